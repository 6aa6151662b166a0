/* clock.h - elapsed time within a process. Times that ranks compare are of exec/interp/exec_clock.h. */
#ifndef HP_CLOCK_H
#define HP_CLOCK_H

#include <time.h>

/* Seconds on a clock that is never set; from when it counts is undefined. */
static inline double hp_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
