/* clock.h - elapsed time within a process. exec/interp/exec_clock.h has the clock that ranks share. */
#ifndef HP_CLOCK_H
#define HP_CLOCK_H

#include <time.h>

/* Seconds on a monotonic clock with an arbitrary origin. */
static inline double hp_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
