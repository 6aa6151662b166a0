/* late_streams.h - asynchronous work: threads that simulate a device's streams, each in its order, with
 * events between them and random delays. */
#ifndef HP_TESTS_LATE_STREAMS_H
#define HP_TESTS_LATE_STREAMS_H

#include "exec/device/device.h"
#include "base/rng.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct hp_event {
    int64_t recorded, query; /* times it was recorded: submitted to a stream, and reached by it */
    struct timespec at;
};

typedef struct late_wait {
    const hp_event *event;
    int64_t count;
} late_wait;

typedef struct late_item {
    struct late_item *next;
    bool kept; /* self belongs to a capture */
    int n_wait;
    late_wait *wait;
    hp_event *done;
    int64_t count; /* number of completions */
    void (*work)(void *self);
    void *self;
} late_item;

typedef struct late_stream {
    struct late_stream *next;
    struct late_rank *rank;
    int key[3]; /* kind, peer or group, channel */
    pthread_t thread;
    late_item *first, **last;
    bool busy;
} late_stream;

typedef struct late_peer { /* a peer whose memory was opened */
    struct late_rank *rank;
    bool wrong; /* reads other bytes */
} late_peer;

typedef struct late_rank { /* corresponds to a process of a real device; one per thread that runs a rank */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    late_stream *stream;
    bool quit;
    unsigned char *fake, *real; /* the arena's address for the host, and its real one */
    size_t bytes;
    int n_peer;
    late_peer *peer;
    uint64_t seed, draws;
    hp_status failed;
    hp_step step;         /* as seen by the compute stream */
    hp_captured *capture; /* under way */
} late_rank;

struct hp_captured {
    int n;
    struct late_part {
        void (*work)(void *self);
        void *self;
        hp_event *done;
    } * part;
};

extern _Thread_local late_rank *late_me;
late_stream *late_stream_of(int kind, int peer, int channel);
late_item *late_item_of(const hp_order *order, void (*work)(void *), void *self);
void late_put_item(late_stream *s, late_item *item);
void late_give(late_stream *s, const hp_order *order, void (*work)(void *), void *self);

/* Waits until the compute stream is idle. */
void late_drain(void);

#endif
