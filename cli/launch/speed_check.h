/* speed_check.h - measures this machine's current speed: hplan-exec times its yardsticks for a moment. */
#ifndef HP_SPEED_CHECK_H
#define HP_SPEED_CHECK_H

#include "base/status.h"
#include "traces/trace_ring.h"

typedef struct speed_check {
    int ranks;                        /* number of ranks computing at a time */
    double seconds[HP_SPEED_CLASSES]; /* mean time of each yardstick; NaN: not timed */
    double availability;              /* fraction of the time in which they had a processor; NaN: unknown */
} speed_check;

/* Takes about `seconds`. Errors: those of cli_launch_run; HP_EINTERNAL (invalid output). */
hp_status speed_check_run(int ranks, double seconds, speed_check *out, hp_error *err);

#endif
