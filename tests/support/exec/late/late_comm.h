/* late_comm.h - a communicator whose messages by HP_BACKEND_NCCL are work of the late device, built on any
 * other; all other messages go directly or through the host. */
#ifndef HP_TESTS_LATE_COMM_H
#define HP_TESTS_LATE_COMM_H

#include "exec/comm/comm.h"
#include "tests/support/exec/late/late_memory.h"

typedef struct late_group { /* operations that progress together */
    struct late_comm *comm;
    int n;
    hp_comm_op *op;
} late_group;

typedef struct late_comm {
    hp_comm base;
    hp_comm *inner;
    pthread_mutex_t lock; /* inner belongs to no single thread */
    int n_flight;
    struct late_flight {
        hp_event *done; /* NULL: inner's */
        int handle;
        bool used;
    } * flight;
    late_group *group; /* operations since the last end */
    late_wait *wait;
    int n_wait;
    hp_event **done;
} late_comm;

/* Direct where memory can be reached, else staged, on top of the late communicator, on top
 * of the rank's own. */
hp_comm *late_comm_new(hp_comm *inner, const hp_memory *memory);

#endif
