/* turn.h - inside of bench: one operation on its buffers, checked once, timed many times. Everything here is
 * collective: over all ranks. */
#ifndef HP_TURN_H
#define HP_TURN_H

#include "exec/bench/setup.h"

enum { HP_BENCH_OUT_OF_PLACE, HP_BENCH_IN_PLACE, HP_BENCH_PLACES };
enum { HP_BENCH_PIPELINED, HP_BENCH_BARRIERED, HP_BENCH_MODES };
extern const char *const hp_bench_mode_names[HP_BENCH_MODES];

/* Samples that a rank takes in all its turns. */
static inline int64_t hp_bench_samples(const hp_bench_request *r, int mode) {
    return r->turns * (mode == HP_BENCH_PIPELINED ? 1 : r->iterations);
}

/* Buffers of the operations. */
typedef struct hp_bench_memory {
    hp_memory memory;
    unsigned char *data, *source, *aside; /* each has room for the largest data; one allocation */
    int64_t bytes;                        /* size of that allocation */
} hp_bench_memory;

/* Where operations run: as in a plan, only the back end that reads shared memory gets shared memory. */
typedef struct hp_bench_room {
    const hp_bench_setup *setup;
    const hp_yard_waiter *w;
    bool crowded;
    hp_bench_memory private, shared; /* shared: empty where no series needs it */
} hp_bench_room;

static inline const hp_bench_memory *hp_bench_memory_of(const hp_bench_room *room, int32_t backend) {
    return backend == HP_BACKEND_SHM ? &room->shared : &room->private;
}

/* Runs the operation once. *wrong: number of wrong elements on this rank. Barrier: 1 if this rank left before
 * the last arrived, NaN where clocks cannot tell. Errors: as hp_yard_wait. */
hp_status hp_bench_check(const hp_bench_room *room, const hp_bench_run *s, int64_t count, int place,
                         double *wrong, hp_error *err);

/* Runs a turn: warms up, then times iterations. sample: pipelined, one value: the mean time of an iteration;
 * barriered, one value per iteration. */
hp_status hp_bench_turn(const hp_bench_room *room, const hp_bench_run *s, int64_t count, int place, int mode,
                        double *sample, hp_error *err);

#endif
