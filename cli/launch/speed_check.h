/* speed_check.h - how fast this machine is now: hplan-exec times its yardsticks for a moment. */
#ifndef HP_SPEED_CHECK_H
#define HP_SPEED_CHECK_H

#include "base/status.h"
#include "traces/trace_ring.h"

typedef struct speed_check {
    int ranks;                        /* that computed at a time */
    double seconds[HP_SPEED_CLASSES]; /* mean of each yardstick; NaN: not timed */
    double availability;              /* share of the time in which they had a processor; NaN */
} speed_check;

/* Takes about `seconds`. Errors: those of cli_launch_run; HP_EINTERNAL (an answer that is none). */
hp_status speed_check_run(int ranks, double seconds, speed_check *out, hp_error *err);

#endif
