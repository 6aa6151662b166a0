/* calibrate_store.h - stores what `hplan calibrate` has measured beside its table, so that it can stop and
 * resume without loss. */
#ifndef HP_CALIBRATE_STORE_H
#define HP_CALIBRATE_STORE_H

#include "costmodels/calibrate.h"

typedef struct calibrate_store {
    char path[4160];
    char processor[300]; /* the measured processor; includes the GPU, if it is one */
    int64_t since_s;     /* runs since then need not be repeated */
} calibrate_store;

/* Adds the samples beside the table to the calibration, and begins or resumes `jobs`; "": not resumable.
 * Ignores samples of another processor and reports that on stderr. gpu: "" for cores. Errors: HP_EDATA,
 * HP_ECREATE, HP_EIO. */
hp_status calibrate_store_open(calibrate_store *s, const char *cost_path, const char *gpu, const char *jobs,
                               hp_calibration *c, hp_error *err);

/* Adds the newest executed run of a run.db to the calibration and stores it. Errors: HP_EDATA (also if
 * another processor executed it). */
hp_status calibrate_store_take(const calibrate_store *s, const char *run_db, hp_calibration *c,
                               hp_error *err);

#endif
