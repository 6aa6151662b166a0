/* compare_speed.h - how much of a prediction's error is the speed that the machine happened to have, and how much the
 * model's.
 *
 * A slowdown is the time of a fixed kernel (traces/yardsticks.def) over its time on the quiet machine. Each task has two:
 * that of the run, and that which the prediction was made for; both follow from its class of operations. A task predicted to take t then takes
 * t * run / predicted at the speed of the run. The step goes with its compute tasks: its factor is their mean, weighted
 * by their time, over the share of the time in which ranks had a processor. So do messages, which wait, and tasks that are
 * longer than a processor is taken away for; the median of shorter ones is of one that was not interrupted. What remains of
 * the error is the model's. */
#ifndef HP_COMPARE_SPEED_H
#define HP_COMPARE_SPEED_H

#include "traces/check/compare.h"
#include "traces/run_speed.h"

/* Slowdowns by task of the predicting trace (index into hp_trace.task). */
typedef struct hp_task_speed {
    const double *run, *predicted; /* NULL: not known */
    double present; /* share of the time with a processor, of that which the prediction expects */
    double slice_s; /* tasks up to this length are not interrupted, in the median */
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
