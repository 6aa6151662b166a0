/* run_speed.h - the yardsticks of a recorded run: how fast the machine was. */
#ifndef HP_RUN_SPEED_H
#define HP_RUN_SPEED_H

#include "traces/query.h"

/* A run's samples of a yardstick, by step, rank, time, without outliers from a machine that stood still or
 * served an interrupt. If at most 5% took more than 3 times the median, those are dropped. A core whose other
 * thread works, or whose frequency falls, is hardly ever slower than that. Errors: HP_EDATA. */
hp_status hp_yardstick_samples(hp_arena *arena, hp_db *db, int64_t run, hp_yardstick y, hp_trace_value **v,
                               int64_t *n, hp_error *err);

/* The yardsticks of a run, after the steps in a trace. Each step's samples are averaged first: steps are
 * equal amounts of work, so the work is then sampled evenly, as tasks are. Availability is the share of a
 * step in which its ranks had a processor. It is the median of the steps' time with one (mean over ranks)
 * over the median of their time, so that a few long absences do not count. */
typedef struct hp_run_speed {
    int n[HP_SPEED_CLASSES];          /* steps after which a yardstick was sampled */
    double seconds[HP_SPEED_CLASSES]; /* mean over those steps; NaN: none */
    double error[HP_SPEED_CLASSES];   /* relative standard error of that mean; NaN: fewer than 2 */
    double availability;              /* NaN: not recorded */
} hp_run_speed;

/* `t` without its warm-up step. Errors: HP_EDATA. */
hp_status hp_run_speed_read(hp_arena *arena, hp_db *db, const hp_trace *t, hp_run_speed *out, hp_error *err);

/* The best linear estimate of a slowdown (Robinson 1991, "That BLUP is a good thing"). The observation, with
 * the relative standard error `error`, is drawn towards the usual slowdown, around which runs vary by the
 * relative deviation `spread`. An unknown error counts as large as the spread; without a spread the
 * observation stays. */
double hp_speed_shrink(double seen, double error, double usual, double spread);

#endif
