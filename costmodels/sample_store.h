/* sample_store.h - the runs from which a cost table was made, stored beside it: x.samples.db of x.cost. The
 * table is a function of these samples alone, so that a calibration can stop after any run, resume later, and
 * include other runs. */
#ifndef HP_SAMPLE_STORE_H
#define HP_SAMPLE_STORE_H

#include "costmodels/calibrate.h"

enum {
    HP_SAMPLE_STORE_VERSION = 2,
    HP_SAMPLE_STORE_KEPT = 4 /* newest runs of a job */,
    HP_SAMPLE_STORE_HELD = 20 /* newest that were predicted */
};

/* "x.samples.db" of "x.cost". Returns `out`. */
const char *hp_sample_store_path(const char *cost_path, char *out, size_t n);

/* Adds the newest HP_SAMPLE_STORE_KEPT runs of each job to the calibration; does nothing without a file.
 * *other: the samples belong to another processor and were ignored. Errors: HP_EDATA (damaged, of another
 * version); HP_EIO. */
hp_status hp_sample_store_read(const char *path, const char *processor, hp_calibration *c, bool *other,
                               hp_error *err);

/* Appends the calibration's last run, completely or not at all. Creates the file; empties one of another
 * processor. Errors: HP_EDATA, HP_ECREATE, HP_EIO (disk full). */
hp_status hp_sample_store_append(const char *path, const char *processor, hp_calibration *c, hp_error *err);

/* Appends a run that was compared with its prediction (hp_calibration_hold). */
hp_status hp_sample_store_hold(const char *path, const char *processor, const char *job, int64_t time_s,
                               hp_held held, hp_error *err);

/* Start time of an unfinished calibration of these jobs ("all", "net resnet18 ..."). If there is none, starts
 * one at `now_s`. Runs since then need not be repeated. Errors: as above. */
hp_status hp_sample_store_begin(const char *path, const char *processor, const char *jobs, int64_t now_s,
                                int64_t *since_s, hp_error *err);
/* It is complete. */
hp_status hp_sample_store_end(const char *path, hp_error *err);

/* Has the job run since then? */
bool hp_calibration_has(const hp_calibration *c, const char *job, int64_t since_s);

#endif
