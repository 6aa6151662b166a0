/* bench_room.h - inside of bench: the memory that operations work on. */
#ifndef HP_BENCH_ROOM_H
#define HP_BENCH_ROOM_H

#include "exec/bench/turn.h"

/* Ready for the largest of the set-up's sizes; where a series is by shared memory, in memory that the ranks of the node can
 * read, and its messages are put in the communicator's way. *shared: they are, or no series asked for it. The room must
 * outlive the communicator. Collective: over all ranks. Errors: HP_EPLAN (out of memory), the communicator's. */
hp_status hp_bench_room_open(hp_bench_room *room, bool *shared, hp_error *err);
void hp_bench_room_close(hp_bench_room *room);

#endif
