/* interval.h - how far a run may be from its prediction, and when two predictions cannot be told apart.
 *
 * Errors are of the logarithm of the step, so that twice as long and half as long are as far; parts are independent
 * and their variances add. Intervals hold 90 %: z = 1.645 of a normal distribution. */
#ifndef HP_INTERVAL_H
#define HP_INTERVAL_H

#include "sim/exposure.h"

#define HP_INTERVAL_Z 1.6448536269514722 /* 0.95 quantile of the standard normal distribution */

/* What a run has whose figure is the median of its steps: `hplan run`'s default. */
enum { HP_INTERVAL_STEPS = 10 };

/* More ranks than cores: of the seven such configurations of docs/measurements.md (tests/accuracy, seed 31), beside the
 * error of a step. */
#define HP_CROWDED_RMS 0.12

/* Of a device of whose rates nothing is known: data sheets go from 8 to over 90 Tflop/s in float32 and from 0.3 to 8 TB/s, a
 * factor of 26, which the interval of 90 % then spans to either side. */
#define HP_GUESSED_RMS (3.258096538021482 / HP_INTERVAL_Z) /* ln 26 */

/* What changes within minutes and no yardstick shows: runs up to a quarter of an hour after calibration were off by so much
 * more than those that calibration held against its table (tests/accuracy, seeds 31 to 33, no more ranks than cores: root
 * mean squares of 10.1, 8.3, 10.8 % against 9.6, 5.8, 10.2 %). */
#define HP_LATER_RMS 0.04

/* Variances of the logarithm of a step, by cause. */
typedef struct hp_uncertainty {
    double model; /* of predictions by this table as such: simulator and rows together */
    double
        costs; /* of the rows that this step rests on (hp_exposure_variance), beyond what `model` has of them */
    double jitter; /* of what a run measures, around what it would measure in the long run */
    double drift;  /* of the machine's speed from run to run */
    double draws;  /* of the prediction itself, from finitely many draws */
} hp_uncertainty;

/* The jitter of a run's figure from that of a step of `step_s` (variance of its logarithm): neighbouring steps meet
 * the same slow core. */
double hp_interval_jitter(const hp_jitter_process *p, double step_s, double variance);

/* 90 %, around step_s. One that reaches further than a factor of 100 says nothing of the step: both ends are 0, not known. */
void hp_interval(const hp_uncertainty *u, double step_s, double *low_s, double *high_s);

/* A prediction as it is compared. */
typedef struct hp_predicted {
    double step_s; /* per whatever both are counted in */
    hp_uncertainty uncertainty;
    const hp_exposure *exposure;
} hp_predicted;

/* Is their difference within what their errors explain, at 90 %? Errors that both have cancel: of rows they share, of
 * the machine's speed, and of the model as far as they spend their time alike. Symmetric. */
bool hp_interval_tie(const hp_predicted *a, const hp_predicted *b);

/* From the table: relative errors of its predictions (crowded: of more ranks than cores), and of its machine's speed from run to run with so many ranks
 * on a node (0: not known). */
double hp_interval_model(const hp_cost_table *t, const hp_machine *m, double step_s, bool crowded);
double hp_interval_drift(const hp_cost_table *t, const hp_machine *m, int ranks);

#endif
