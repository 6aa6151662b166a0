/* turn.h - inside of bench: one operation on its buffers, checked once, timed many times. Everything here is collective:
 * over all ranks. */
#ifndef HP_TURN_H
#define HP_TURN_H

#include "exec/bench/setup.h"

enum { HP_BENCH_OUT_OF_PLACE, HP_BENCH_IN_PLACE, HP_BENCH_PLACES };
enum { HP_BENCH_PIPELINED, HP_BENCH_BARRIERED, HP_BENCH_MODES };
extern const char *const hp_bench_mode_names[HP_BENCH_MODES];

/* Of all turns of a rank. */
static inline int64_t hp_bench_samples(const hp_bench_request *r, int mode) {
    return r->turns * (mode == HP_BENCH_PIPELINED ? 1 : r->iterations);
}

/* What operations work on. */
typedef struct hp_bench_memory {
    hp_memory memory;
    unsigned char *data, *source, *aside; /* each with room for the largest whole; one allocation */
    int64_t bytes;                        /* of it */
} hp_bench_memory;

/* Where operations take place: as in a plan by one back end alone, in memory that is shared only where it reads it. */
typedef struct hp_bench_room {
    const hp_bench_setup *setup;
    const hp_yard_waiter *w;
    bool crowded;
    hp_bench_memory private, shared; /* shared: empty where no series asks for it */
} hp_bench_room;

static inline const hp_bench_memory *hp_bench_memory_of(const hp_bench_room *room, int32_t backend) {
    return backend == HP_BACKEND_SHM ? &room->shared : &room->private;
}

/* Does the operation once. *wrong: elements that are not what they must be, of this rank; of a barrier 1 if this rank left
 * it before the last had come, NaN where clocks cannot tell. Errors: as hp_yard_wait. */
hp_status hp_bench_check(const hp_bench_room *room, const hp_bench_run *s, int64_t count, int place,
                         double *wrong, hp_error *err);

/* A turn: warms up, then times iterations. sample: of the pipelined mode one, the time of all iterations divided by their number; else one of each iteration. */
hp_status hp_bench_turn(const hp_bench_room *room, const hp_bench_run *s, int64_t count, int place, int mode,
                        double *sample, hp_error *err);

#endif
