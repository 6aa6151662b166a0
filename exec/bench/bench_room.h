/* bench_room.h - inside of bench: the buffers that operations work on. */
#ifndef HP_BENCH_ROOM_H
#define HP_BENCH_ROOM_H

#include "exec/bench/turn.h"

/* Allocates buffers for the largest of the set-up's sizes. Where a series uses shared memory, the ranks of
 * the node can map the buffers, and the communicator sends its messages that way. *shared: that works, or no
 * series asked for it. The room must outlive the communicator. Collective: over all ranks. Errors: HP_EPLAN
 * (out of memory), the communicator's. */
hp_status hp_bench_room_open(hp_bench_room *room, bool *shared, hp_error *err);
void hp_bench_room_close(hp_bench_room *room);

#endif
