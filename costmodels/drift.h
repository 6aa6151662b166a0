/* drift.h - how the speed of the machine varied during one recorded run, from its yardsticks: between its steps, and
 * between its ranks. */
#ifndef HP_DRIFT_H
#define HP_DRIFT_H

#include "traces/query.h"

/* One reading of a yardstick. */
typedef struct hp_reading {
    int32_t yardstick;  /* hp_yardstick, one of the HP_SPEED_CLASSES */
    int32_t rank, iter; /* it followed this step */
    double t_s;         /* since the run's first reading */
    double seconds;
} hp_reading;

typedef struct hp_drift {
    hp_reading *reading; /* by yardstick, step, rank, time; of the steps of the trace and the one before */
    int n;
    double availability; /* processor time over time of the steps; 1 where it was not recorded */
    double reliability;  /* of the readings beside a step as a measure of the speed in it, 0..1 */
    int n_rank, n_iter;
    double *factor; /* (n_iter, n_rank): slowdown in the step against the run's mean */
} hp_drift;

/* Reads it. The factor of a step comes from the readings right before and after it, of all classes: each relative to its
 * class's mean over the run, since classes slow down together. Their mean is drawn towards the rank's own by its
 * reliability as two parallel measurements, 2r / (1 + r) with r the correlation of the readings before with those after
 * (Spearman 1910, Brown 1910): what changes faster than a step says nothing of the step.
 * `t` without its warm-up step. Errors: HP_EDATA. */
hp_status hp_drift_read(hp_arena *arena, hp_db *db, const hp_trace *t, hp_drift *d, hp_error *err);

static inline double hp_drift_factor(const hp_drift *d, int iter, int rank) {
    return rank < d->n_rank ? d->factor[iter * d->n_rank + rank] : 1;
}

#endif
