/* drift.h - variation of the machine's speed during one recorded run, from its yardsticks: between steps and
 * between ranks. */
#ifndef HP_DRIFT_H
#define HP_DRIFT_H

#include "traces/query.h"

/* One reading of a yardstick. */
typedef struct hp_reading {
    int32_t yardstick;  /* hp_yardstick, one of the HP_SPEED_CLASSES */
    int32_t rank, iter; /* it followed this step */
    double t_s;         /* seconds since the run's first reading */
    double seconds;
} hp_reading;

typedef struct hp_drift {
    hp_reading *reading; /* sorted by yardstick, step, rank, time; for the steps of the trace and the one
                          * before */
    int n;
    double availability; /* processor time over elapsed time of the steps; 1 if it was not recorded */
    double reliability;  /* reliability, 0..1, of readings beside a step as a measure of the speed in it */
    int n_rank, n_iter;
    double *factor; /* (n_iter, n_rank): slowdown in the step against the run's mean */
} hp_drift;

/* Reads the drift of a run. A step's factor comes from the readings of all classes right before and after it,
 * each relative to its class's mean over the run, because classes slow down together. Their mean is shrunk
 * towards the rank's own by the reliability of two parallel measurements, 2r / (1 + r), where r is the
 * correlation of readings before and after (Spearman 1910, Brown 1910). Changes faster than a step say
 * nothing about the step. `t` excludes the warm-up step. Errors: HP_EDATA. */
hp_status hp_drift_read(hp_arena *arena, hp_db *db, const hp_trace *t, hp_drift *d, hp_error *err);

static inline double hp_drift_factor(const hp_drift *d, int iter, int rank) {
    return rank < d->n_rank ? d->factor[iter * d->n_rank + rank] : 1;
}

#endif
