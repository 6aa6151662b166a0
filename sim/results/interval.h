/* interval.h - how far a run may be from its prediction, and when two predictions are indistinguishable.
 *
 * Errors are those of the step's logarithm, so that twice and half as long are equally far. Parts are
 * independent; their variances add. Intervals hold 90 %: z = 1.645 of a normal distribution. */
#ifndef HP_INTERVAL_H
#define HP_INTERVAL_H

#include "sim/results/exposure.h"

/* Number of steps of a run whose figure is their median: `hplan run`'s default. */
enum { HP_INTERVAL_STEPS = 10 };

/* Additional error with more ranks than cores, from the seven such configurations of docs/measurements.md
 * (tests/accuracy, seed 31). */
#define HP_CROWDED_RMS 0.12

/* Error for a device with unknown rates. Data sheets range from 8 to over 90 Tflop/s in float32 and from 0.3
 * to 8 TB/s, a factor of 26, which the 90 % interval spans to either side. */
#define HP_GUESSED_RMS (3.258096538021482 / HP_INTERVAL_Z) /* ln 26 */

/* Changes within minutes that no yardstick shows. Runs up to a quarter of an hour after calibration had this
 * much more error than those that calibration compared with its table (tests/accuracy, seeds 31 to 33, no
 * more ranks than cores: root mean squares of 10.1, 8.3, 10.8 % against 9.6, 5.8, 10.2 %). */
#define HP_LATER_RMS 0.04

/* Variances of a step's logarithm, by cause. */
typedef struct hp_uncertainty {
    double model; /* variance of this table's predictions: simulator and rows together */
    /* variance of the rows on which this step rests (hp_exposure_variance), beyond their part in `model` */
    double costs;
    double jitter; /* variance of a run's result around its long-term mean */
    double drift;  /* variance of the machine's speed between runs */
    double draws;  /* variance of the prediction, due to finitely many draws */
} hp_uncertainty;

/* Jitter of a run's figure, derived from that of a step of `step_s` (variance of its logarithm): neighbouring
 * steps meet the same slow core. */
double hp_interval_jitter(const hp_jitter_process *p, double step_s, double variance);

/* The 90 % interval around step_s. Beyond a factor of 100, it is meaningless: both ends become 0, unknown. */
void hp_interval(const hp_uncertainty *u, double step_s, double *low_s, double *high_s);

/* A prediction in the form needed for comparison. */
typedef struct hp_predicted {
    double step_s; /* seconds per common unit */
    hp_uncertainty uncertainty;
    const hp_exposure *exposure;
} hp_predicted;

/* Do the errors explain the difference, at 90 %? Common errors cancel: those of shared rows, of the machine's
 * speed, and of the model as far as both spend their time alike. Symmetric. */
bool hp_interval_tie(const hp_predicted *a, const hp_predicted *b);

/* Relative errors from the table: of its predictions (crowded: with more ranks than cores), and of its
 * machine's speed between runs with this many ranks on a node (0: unknown). */
double hp_interval_model(const hp_cost_table *t, const hp_machine *m, double step_s, bool crowded);
double hp_interval_drift(const hp_cost_table *t, const hp_machine *m, int ranks);

#endif
