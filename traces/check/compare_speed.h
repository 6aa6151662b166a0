/* compare_speed.h - how much of a prediction's error is the speed that the machine happened to have, and how much the
 * model's.
 *
 * A slowdown is the time of a fixed kernel (traces/yardsticks.def) over its time on the quiet machine. Each task has two:
 * that of the run, and that which the prediction was made for; both follow from its class of operations, the first also
 * from the share of its time in which the rank had a processor. A task predicted to take t then takes
 * t * run / predicted at the speed of the run. The step goes with its compute tasks: its factor is their mean, weighted
 * by their time. What remains of the error is the model's. */
#ifndef HP_COMPARE_SPEED_H
#define HP_COMPARE_SPEED_H

#include "traces/check/compare.h"

enum { HP_SPEED_CLASSES = HP_YARD_DRAM + 1 }; /* arith, l2, dram: of what compute tasks consist */

/* The yardsticks of a run, after the steps that a trace holds. */
typedef struct hp_run_speed {
    int n[HP_SPEED_CLASSES]; /* steps after which a yardstick was sampled */
    double seconds
        [HP_SPEED_CLASSES]; /* mean over those steps; NaN: none. Steps are equal amounts of work, so that what
                                         lies between them is sampled evenly over the work, as tasks are */
    double error[HP_SPEED_CLASSES]; /* relative standard error of that mean; NaN: fewer than 2 */
    double availability; /* processor time of the ranks over the time of their steps; NaN: not recorded */
} hp_run_speed;

/* `t` without its warm-up step. Errors: HP_EDATA. */
hp_status hp_run_speed_read(hp_arena *arena, hp_db *db, const hp_trace *t, hp_run_speed *out, hp_error *err);

/* The best linear estimate of a slowdown (Robinson 1991, "That BLUP is a good thing"): what was seen with the relative
 * standard error `error`, drawn towards the usual one, around which runs vary by the relative deviation `spread`. An
 * unknown error counts as large as the spread; without a spread what was seen stays. */
double hp_speed_shrink(double seen, double error, double usual, double spread);

/* Slowdowns by task of the predicting trace (index into hp_trace.task). */
typedef struct hp_task_speed {
    const double *run, *predicted; /* NULL: not known */
} hp_task_speed;

/* The figures of a step. Unknown: `known` false, the others NaN. */
typedef struct hp_speed_split {
    bool known;
    double quiet;         /* slowdown of the run against the quiet machine: 1.28 */
    double predicted_for; /* that which the prediction was made for */
    double usual;         /* of the run against that: quiet / predicted_for */
    double expected_s;    /* predicted step at the speed of the run */
    double equal_speed_s; /* measured step at the speed that was predicted for */
    double model_error;   /* (expected - measured) / measured */
} hp_speed_split;
hp_speed_split hp_speed_unknown(void);

/* Splits the error of a comparison of a prediction, and sets expected_s and model_error of its rows. `a`: the
 * prediction, as hp_compare left it. */
hp_speed_split hp_compare_split(hp_arena *arena, const hp_trace *a, const hp_task_speed *speed,
                                hp_comparison *c);

#endif
