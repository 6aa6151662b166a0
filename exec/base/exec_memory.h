/* exec_memory.h - where a rank's buffers are: host memory or a device's, with the device's
 * asynchronous operations.
 *
 * A device whose operations may still be pending when a call returns has streams. Operations of one stream
 * run in the order of submission; only events order those of two streams. An hp_order gives the events an
 * operation waits for and the one it records; the executor knows nothing else about a device's timing. */
#ifndef HP_EXEC_MEMORY_H
#define HP_EXEC_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct hp_placement;
typedef struct hp_memory_ops hp_memory_ops;

/* A device's memory, opened: the first argument of every function of the tables below. */
typedef struct hp_memory {
    const hp_memory_ops *ops;
    void *device; /* private to the back end; NULL: host memory */
} hp_memory;

typedef struct hp_event hp_event; /* opaque; defined by the device */

typedef struct hp_order {
    int32_t n;
    hp_event *const *after; /* the operation starts once all of these have completed */
    hp_event *done;         /* recorded after the operation; NULL: none */
} hp_order;

typedef enum hp_stream { HP_STREAM_COMPUTE, HP_STREAM_COPY } hp_stream;

typedef struct hp_captured hp_captured; /* opaque: a recorded graph of operations */

/* Graphs: operations of the compute stream that are the same in every step are captured once and launched
 * many times. The driver's memory for them does not count as the role's memory. */
typedef struct hp_capture_ops {
    /* Operations submitted to the compute stream from here on are recorded, not executed. Nothing may be
     * pending then; until `end` only such operations may be submitted, with an empty order, and no call that
     * waits or allocates. */
    hp_status (*begin)(const hp_memory *m, hp_error *err);
    /* Errors: HP_EUNAVAIL, an operation cannot be captured. Afterwards the stream is as before in either
     * case. */
    hp_status (*end)(const hp_memory *m, hp_captured **captured, hp_error *err);
    /* Launches the whole graph. The events of its operations are recorded again, each as soon as its
     * operation is done. */
    hp_status (*launch)(const hp_memory *m, hp_captured *captured, const hp_order *order, hp_error *err);
    void (*free)(const hp_memory *m, hp_captured *captured);
} hp_capture_ops;

typedef struct hp_stream_ops {
    hp_status (*event_new)(const hp_memory *m, hp_event **event, hp_error *err);
    void (*event_free)(const hp_memory *m, hp_event *event);
    /* Never blocks. Errors: HP_EUNAVAIL, any error of the device since the last call. */
    hp_status (*query)(const hp_memory *m, hp_event *event, bool *yes, hp_error *err);
    /* Seconds between two completed events. */
    hp_status (*elapsed)(const hp_memory *m, hp_event *from, hp_event *to, double *seconds, hp_error *err);
    /* Records the event after all earlier work of the compute stream, and waits for it. */
    hp_status (*record)(const hp_memory *m, hp_event *event, hp_error *err);
    /* Copies between the device and page-locked host memory, in either direction, or from a peer's
     * memory. A copy runs on the compute stream, as one of its tasks, or concurrently on the
     * single stream of copies. */
    hp_status (*copy)(const hp_memory *m, hp_stream stream, void *to, const void *from, int64_t bytes,
                      const hp_order *order, hp_error *err);
    hp_status (*host_new)(const hp_memory *m, int64_t bytes, void **at, hp_error *err); /* page-locked */
    void (*host_free)(const hp_memory *m, void *at);
    const hp_capture_ops *capture; /* NULL: graphs are not supported */
} hp_stream_ops;

/* Handle by which another process of the node opens an allocation. */
typedef struct hp_memory_name {
    unsigned char bytes[64];
} hp_memory_name;

typedef struct hp_peer_ops {
    hp_status (*name)(const hp_memory *m, void *at, hp_memory_name *name,
                      hp_error *err); /* at: a pointer that alloc returned */
    /* Maps the memory that another process exported under this name, as a source of copies. Errors:
     * HP_EUNAVAIL, not reachable. */
    hp_status (*open)(const hp_memory *m, const hp_memory_name *name, void **at, hp_error *err);
    void (*close)(const hp_memory *m, void *at); /* call before its owner frees it */
} hp_peer_ops;

struct hp_memory_ops {
    const char *name;
    /* Chooses this process's device. `ranks` has the program's roles, replicas and clients (NULL: every rank
     * has the next device). The launcher tells which ranks share this node; the driver tells how many devices
     * it has. NULL: there is only the host. Errors: HP_EUNAVAIL (no driver, no device). */
    hp_status (*open)(hp_memory *m, const struct hp_placement *ranks, hp_error *err);
    void (*close)(hp_memory *m); /* nothing of it may be in use any more; accepts NULL */
    /* Zeroed memory, aligned to 64 bytes. Errors: HP_EPLAN; the caller adds what it was for. */
    hp_status (*alloc)(const hp_memory *m, int64_t bytes, void **at, hp_error *err);
    void (*free)(const hp_memory *m, void *at, int64_t bytes);
    /* Copies to and from the host. Complete on return, and ordered after earlier work of
     * the compute stream. */
    hp_status (*put)(const hp_memory *m, void *to, const void *from, int64_t bytes, hp_error *err);
    hp_status (*get)(const hp_memory *m, void *to, const void *from, int64_t bytes, hp_error *err);
    hp_status (*zero)(const hp_memory *m, void *at, int64_t bytes, hp_error *err);
    const hp_stream_ops *streams; /* NULL: all work is complete on return */
    bool host;                    /* the host can read and write this memory */
    const hp_peer_ops *peers;     /* NULL: no other process can map this memory */
};

extern const hp_memory_ops hp_memory_host;
/* Host memory that other processes of the node can read (shared.h). alloc commits all its pages, so no later
 * access can run out of memory. */
extern const hp_memory_ops hp_memory_shared;

/* Opens the memory that `ops` describes. Errors: those of ops->open. */
hp_status hp_memory_open(const hp_memory_ops *ops, const struct hp_placement *ranks, hp_memory *m,
                         hp_error *err);
void hp_memory_close(hp_memory *m);

/* A host view of a device's bytes: the bytes themselves or a copy. hp_memory_view_end writes a copy
 * back if `changed`. */
hp_status hp_memory_view(const hp_memory *m, void *at, int64_t bytes, void **view, hp_error *err);
hp_status hp_memory_view_end(const hp_memory *m, void *at, int64_t bytes, void *view, bool changed,
                             hp_error *err);

#endif
