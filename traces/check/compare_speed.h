/* compare_speed.h - how much of a prediction's error is due to the speed that the machine happened to have,
 * and how much to the model.
 *
 * A slowdown is the time of a fixed kernel (traces/yardsticks.def) divided by its time on the quiet machine.
 * Each task has two, by its class of operations: that of the run, and that which the prediction assumed. A
 * task predicted to take t then takes t * run / predicted at the speed of the run. The step scales with its
 * compute tasks: its factor is their mean, weighted by time, divided by the share of the time in which ranks
 * had a processor. So do messages, which wait, and tasks longer than an absence of the processor; the median
 * of shorter ones is that of an uninterrupted one. The rest of the error is the model's. */
#ifndef HP_COMPARE_SPEED_H
#define HP_COMPARE_SPEED_H

#include "traces/check/compare.h"
#include "traces/run_speed.h"

/* Slowdowns by task of the predicting trace (index into hp_trace.task). */
typedef struct hp_task_speed {
    const double *run, *predicted; /* NULL: not known */
    double present; /* share of the time with a processor, relative to what the prediction assumes */
    double slice_s; /* tasks up to this length are not interrupted, in the median */
} hp_task_speed;

/* Figures of a step. Unknown: `known` false, the others NaN. */
typedef struct hp_speed_split {
    bool known;
    double quiet;         /* slowdown of the run against the quiet machine, for example 1.28 */
    double predicted_for; /* slowdown that the prediction assumed */
    double usual;         /* relative slowdown: quiet / predicted_for */
    double expected_s;    /* predicted step at the speed of the run */
    double equal_speed_s; /* measured step at the speed that was assumed */
    double model_error;   /* (expected - measured) / measured */
} hp_speed_split;
hp_speed_split hp_speed_unknown(void);

/* Splits the error of a comparison with a prediction, and sets expected_s and model_error of its rows. `a`:
 * the prediction, as hp_compare left it. */
hp_speed_split hp_compare_split(hp_arena *arena, const hp_trace *a, const hp_task_speed *speed,
                                hp_comparison *c);

#endif
