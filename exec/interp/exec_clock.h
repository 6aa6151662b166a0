/* exec_clock.h - one clock for all ranks: CLOCK_MONOTONIC of this node moved by the offset to rank 0's. */
#ifndef HP_EXEC_CLOCK_H
#define HP_EXEC_CLOCK_H

#include "exec/comm/comm.h"

typedef struct hp_clock {
    int64_t offset_ns;
} hp_clock;

int64_t hp_clock_now_ns(const hp_clock *c);

/* Measures the offset to rank 0: 0 on the same boot of the same machine, else from the ping-pong with the
 * shortest round trip (Cristian 1989). Collective: over all ranks. */
hp_status hp_clock_open(hp_comm *comm, hp_clock *c, hp_error *err);

#endif
