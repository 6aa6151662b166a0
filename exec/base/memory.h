/* memory.h - where a rank's buffers lie: the host's memory or a device's, and what may be under way there.
 *
 * A device whose work has not finished when the call returns has streams: work of one stream happens in the
 * order in which it was given, work of two is ordered by events alone. An order says where a piece of work
 * stands among the others; that is all the executor knows about a device's time. */
#ifndef HP_EXEC_MEMORY_H
#define HP_EXEC_MEMORY_H

#include "plan/base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_event hp_event; /* a device's own */

typedef struct hp_order {
    int32_t n;
    hp_event *const *after; /* the work begins once all of these have happened */
    hp_event *done;         /* happens behind it; NULL: nobody asks */
} hp_order;

typedef enum hp_stream { HP_STREAM_COMPUTE, HP_STREAM_COPY } hp_stream;

typedef struct hp_captured hp_captured; /* a device's own: work to be given again */

/* Work of the compute stream that is the same in every step is given once, and kept. What a device needs for
 * that is its driver's, not in what a plan counts as the role's memory. */
typedef struct hp_capture_ops {
    /* What the compute stream is given from here on is kept, not done. Nothing is under way then; until the
     * end comes nothing but that work, which is ordered by nothing, and no call that waits or allocates. */
    hp_status (*begin)(hp_error *err);
    /* Errors: HP_EUNAVAIL, a part cannot be kept. The stream is as it was before, either way. */
    hp_status (*end)(hp_captured **captured, hp_error *err);
    /* Gives all of it again. The events behind its parts happen anew, each as soon as its part is done. */
    hp_status (*launch)(hp_captured *captured, const hp_order *order, hp_error *err);
    void (*free)(hp_captured *captured);
} hp_capture_ops;

typedef struct hp_stream_ops {
    hp_status (*event_new)(hp_event **event, hp_error *err);
    void (*event_free)(hp_event *event);
    /* Never blocks. Errors: HP_EUNAVAIL, what the device ran into since the last call. */
    hp_status (*query)(hp_event *event, bool *yes, hp_error *err);
    /* From one that has happened to another, in seconds. */
    hp_status (*elapsed)(hp_event *from, hp_event *to, double *seconds, hp_error *err);
    /* Makes the event happen now, once all earlier work of the compute stream has; waits for it. */
    hp_status (*record)(hp_event *event, hp_error *err);
    /* Copies between the device and page-locked host memory, either way, or from a peer's memory: on the
     * compute stream, as one of its tasks, or beside it, on the one stream of all copies. */
    hp_status (*copy)(hp_stream stream, void *to, const void *from, int64_t bytes, const hp_order *order,
                      hp_error *err);
    hp_status (*host_new)(int64_t bytes, void **at, hp_error *err); /* page-locked */
    void (*host_free)(void *at);
    const hp_capture_ops *capture; /* NULL: every piece of work is given each time */
} hp_stream_ops;

/* What another process of the node finds an allocation by. */
typedef struct hp_memory_name {
    unsigned char bytes[64];
} hp_memory_name;

typedef struct hp_peer_ops {
    hp_status (*name)(void *at, hp_memory_name *name, hp_error *err); /* at: as alloc gave it */
    /* The memory that another process named so: copies may read it. Errors: HP_EUNAVAIL, there is no way. */
    hp_status (*open)(const hp_memory_name *name, void **at, hp_error *err);
    void (*close)(void *at); /* before its owner frees it */
} hp_peer_ops;

typedef struct hp_memory_ops {
    const char *name;
    /* Zeros, 64-byte aligned. Errors: HP_EPLAN, the caller says for whom. */
    hp_status (*alloc)(int64_t bytes, void **at, hp_error *err);
    void (*free)(void *at, int64_t bytes);
    /* To and from the host; complete on return, behind the work that the compute stream was given before. */
    hp_status (*put)(void *to, const void *from, int64_t bytes, hp_error *err);
    hp_status (*get)(void *to, const void *from, int64_t bytes, hp_error *err);
    hp_status (*zero)(void *at, int64_t bytes, hp_error *err);
    const hp_stream_ops *streams; /* NULL: all work is complete on return */
    bool host;                    /* the host can read and write it */
    const hp_peer_ops *peers;     /* NULL: no other process can reach it */
} hp_memory_ops;

extern const hp_memory_ops hp_memory_host;

/* Bytes of a device as the host sees them: themselves, or a copy that holds what they do. The end writes a
 * copy back where `changed`. */
hp_status hp_memory_view(const hp_memory_ops *m, void *at, int64_t bytes, void **view, hp_error *err);
hp_status hp_memory_view_end(const hp_memory_ops *m, void *at, int64_t bytes, void *view, bool changed,
                             hp_error *err);

#endif
