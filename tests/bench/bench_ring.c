/* bench_ring.c - times the simulation of a step of data parallelism: ten gradient buckets over a ring of
 * ranks, with every message of every step as an event, and folded as hplan does by default. Compare:
 * tests/peers/simgrid_ring.cpp. usage: bench_ring [RANKS] */
#include "tests/support/sim/gradient_ring.h"

#include <stdlib.h>
#include <time.h>

/* Processor time: other processes on the machine disturb it least. */
static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { RUNS = 15 };

static void measure(const gradient_ring *r, bool steps) {
    double best = 1e9;
    int64_t step_ns = 0;
    for (int i = 0; i < RUNS; i++) {
        hp_arena *arena = hp_arena_new();
        const double t0 = now_s();
        step_ns = gradient_ring_run(arena, r, steps).makespan_ns;
        const double t = now_s() - t0;
        hp_arena_free(arena);
        if (t < best) best = t;
    }
    printf("%d ranks, %s: step %.6f ms, simulated in %.3f ms\n", r->ranks, steps ? "every message" : "folded",
           1e-6 * (double)step_ns, 1e3 * best);
}

int main(int argc, char **argv) {
    gradient_ring r = gradient_ring_128;
    if (argc > 1) r.ranks = atoi(argv[1]);
    measure(&r, true);
    measure(&r, false);
    return 0;
}
