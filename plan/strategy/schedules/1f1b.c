/* 1f1b.c - one forward, one backward pass in turn (PipeDream-Flush, Narayanan et al. 2021). */
#include "plan/strategy/sched_kind.h"

/* The last position begins at once. */
static int warm_up(int positions, int position, int chunks) {
    (void)chunks;
    return positions - position;
}

const hp_sched_kind hp_sched_1f1b = {.name = "1f1b", .warm_up = warm_up, .pipelines = true};
