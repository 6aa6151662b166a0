/* comm_law.h - the contract of comm.h over random programs of many groups: in whatever order operations
 * start, every message arrives, and every collective does what it promises, in parallel with all others. */
#ifndef HP_TESTS_COMM_LAW_H
#define HP_TESTS_COMM_LAW_H

#include "exec/comm/comm.h"
#include "tests/support/plan/random_groups.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct comm_room { /* memory for sent and received data */
    hp_memory memory;
    unsigned char *at;
    int64_t bytes;
    int32_t backend; /* back end of all operations */
    bool outside;    /* some data is elsewhere; only for memory that the host can access */
} comm_room;

/* Runs two programs in turn, as training and evaluation do. `sums`: also all-reduces of floats, by back end
 * 0. `sent`: bytes of messages to each rank. */
hp_status comm_law(hp_comm *comm, const comm_room *room, bool sums, uint64_t seed, int64_t *sent,
                   hp_error *err);
/* The same with every collective: each group's by one of the `backends`, bits 1 << hp_backend. Members of an
 * all-reduce get identical bits, except by MPI; nobody leaves a barrier before all have arrived. An ordered
 * back end gets several operations at a time, in the same order on all ranks. */
hp_status comm_law_collectives(hp_comm *comm, const comm_room *room, uint32_t backends, uint64_t seed,
                               hp_error *err);
/* All ranks together: every collective by every algorithm in every type, `times` times;
 * all else is random. */
hp_status comm_law_sweep(hp_comm *comm, const comm_room *room, int backend, int times, uint64_t seed,
                         hp_error *err);

/* Allocates more than any law uses at a time. */
comm_room comm_room_new(const hp_memory_ops *memory);
void comm_room_free(comm_room *room);

/* Runs this program again under mpirun with that argument, which has no quotes. */
int start_ranks(int n, const char *argument);

#endif
