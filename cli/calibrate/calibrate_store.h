/* calibrate_store.h - what `hplan calibrate` measured so far, beside its table: it stops and goes on without losing any. */
#ifndef HP_CALIBRATE_STORE_H
#define HP_CALIBRATE_STORE_H

#include "costmodels/calibrate.h"

typedef struct calibrate_store {
    char path[4160];
    char processor[300]; /* that is measured; with the GPU where it is one */
    int64_t since_s;     /* runs since then need no repetition */
} calibrate_store;

/* Adds the samples beside the table to the calibration, and begins or goes on with `jobs`; "": one that is not gone on
 * with. Samples of another processor
 * are left out, which it says on stderr. gpu: "" for cores. Errors: HP_EDATA, HP_ECREATE, HP_EIO. */
hp_status calibrate_store_open(calibrate_store *s, const char *cost_path, const char *gpu, const char *jobs,
                               hp_calibration *c, hp_error *err);

/* Adds the newest executed run of a run.db to the calibration and keeps it. Errors: HP_EDATA (also where another processor
 * executed it). */
hp_status calibrate_store_take(const calibrate_store *s, const char *run_db, hp_calibration *c,
                               hp_error *err);

#endif
