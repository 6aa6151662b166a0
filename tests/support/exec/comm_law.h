/* comm_law.h - the contract of comm.h over random programs of many groups: whatever is started in whatever
 * order, every message and every sum arrives, exactly. */
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
} comm_room;

/* Two programs in turns, as training and evaluation join theirs. `sent`: bytes of messages to each rank. */
hp_status comm_law(hp_comm *comm, const comm_room *room, bool sums, uint64_t seed, int64_t *sent,
                   hp_error *err);

/* More than any law's turn takes. */
comm_room comm_room_new(const hp_memory_ops *memory);
void comm_room_free(comm_room *room);

/* Under mpirun: this program again, with that argument; no quotes in it. */
int start_ranks(int n, const char *argument);

#endif
