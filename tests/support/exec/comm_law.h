/* comm_law.h - the contract of comm.h over random programs of many groups: whatever is started in whatever
 * order, every message arrives, and every collective does what it promises, beside all others. */
#ifndef HP_TESTS_COMM_LAW_H
#define HP_TESTS_COMM_LAW_H

#include "exec/comm/comm.h"
#include "tests/support/plan/random_groups.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct comm_room { /* memory for what is sent and received */
    hp_memory memory;
    unsigned char *at;
    int64_t bytes;
    int32_t backend; /* of all operations */
    bool outside;    /* some data lies elsewhere; only of memory that the host can reach */
} comm_room;

/* Two programs in turns, as training and evaluation join theirs. `sums`: all-reduces of floats, by back end 0, beside
 * messages. `sent`: bytes of messages to each rank. */
hp_status comm_law(hp_comm *comm, const comm_room *room, bool sums, uint64_t seed, int64_t *sent,
                   hp_error *err);
/* The same with every collective: each group's by one of the `backends`, bits 1 << hp_backend. Members of an all-reduce,
 * but by MPI, end with the same bits; nobody leaves a barrier before all have come. What an ordered back end is given
 * comes in one order on all ranks, several operations at a time. */
hp_status comm_law_collectives(hp_comm *comm, const comm_room *room, uint32_t backends, uint64_t seed,
                               hp_error *err);
/* All ranks together: every collective by every algorithm in every type, `times` times, all else drawn. */
hp_status comm_law_sweep(hp_comm *comm, const comm_room *room, int backend, int times, uint64_t seed,
                         hp_error *err);

/* More than any law's turn takes. */
comm_room comm_room_new(const hp_memory_ops *memory);
void comm_room_free(comm_room *room);

/* Under mpirun: this program again, with that argument; no quotes in it. */
int start_ranks(int n, const char *argument);

#endif
