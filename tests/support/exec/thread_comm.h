/* thread_comm.h - ranks as threads of one process: the communicator of the law tests, so that
 * sixteen ranks need no launcher. Messages match by (from, to, tag) in order; sends are synchronous:
 * complete once received. After a rank has failed nothing starts any more, so that no buffer is used
 * after its rank is gone. */
#ifndef HP_TESTS_THREAD_COMM_H
#define HP_TESTS_THREAD_COMM_H

#include "exec/comm/comm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREAD_BUCKETS = 1024 };

typedef struct message { /* waits in a bucket for its counterpart; owned by the rank that posted it */
    struct message *next;
    int from, to, tag;
    int64_t bytes;
    void *data; /* the sender's buffer, or the receiver's */
    bool send;
    atomic_bool done;
} message;

typedef struct instance_key {
    int program, group, replica, sequence; /* program: number of programs joined so far; 0 for the world */
} instance_key;

typedef struct instance { /* one collective of a group */
    struct instance *next;
    instance_key key;
    int size, arrived, left;
    int64_t count;
    int dtype, what, root;
    atomic_bool done;
    void *data[]; /* by member, so that the order of the sum is fixed */
} instance;

typedef struct thread_world {
    pthread_mutex_t lock;
    int size;
    message *bucket[THREAD_BUCKETS]; /* by (from, to, tag), oldest first */
    instance *instance;              /* those that not all members have left */
    atomic_bool failed;
} thread_world;

typedef struct thread_flight { /* what a handle stands for: one of these, or none if it is free */
    message *m;
    instance *t;
} thread_flight;

typedef struct thread_comm {
    hp_comm base;
    thread_world *world;
    const hp_program *program;
    int n_joined, *sequence; /* per group of the program */
    int world_sequence;
    int n_flight;
    thread_flight *flight;
} thread_comm;

hp_comm *thread_comm_new(thread_world *w, int rank);
thread_world *thread_world_new(int size);

/* Records that this rank cannot go on, so no other can. True for the first. */
bool thread_world_fail(thread_world *w);

/* Call after all ranks have closed theirs. */
void thread_world_free(thread_world *w);

#endif
