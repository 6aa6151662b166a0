/* sample_store.h - the runs that a cost table was made of, kept in a file beside it: x.samples.db of x.cost. The table is a
 * function of these samples alone, so that a calibration can stop after any run, go on later, and take in other runs. */
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

/* Adds what the file holds to the calibration: the newest HP_SAMPLE_STORE_KEPT runs of each job. Nothing where there is no
 * file. *other: the samples are of another processor, and were left out. Errors: HP_EDATA (damaged, of another version);
 * HP_EIO. */
hp_status hp_sample_store_read(const char *path, const char *processor, hp_calibration *c, bool *other,
                               hp_error *err);

/* Appends the calibration's last run: all of it, or nothing. Makes the file; empties one of another processor. Errors:
 * HP_EDATA, HP_ECREATE, HP_EIO (disk full). */
hp_status hp_sample_store_append(const char *path, const char *processor, hp_calibration *c, hp_error *err);

/* Appends a run that was held against its prediction (hp_calibration_hold). */
hp_status hp_sample_store_hold(const char *path, const char *processor, const char *job, int64_t time_s,
                               hp_held held, hp_error *err);

/* When a calibration of these jobs ("all", "net resnet18 ...") that did not end began; else `now_s`, from which on this one
 * is that. Runs since then need no repetition. Errors: as above. */
hp_status hp_sample_store_begin(const char *path, const char *processor, const char *jobs, int64_t now_s,
                                int64_t *since_s, hp_error *err);
/* It is complete. */
hp_status hp_sample_store_end(const char *path, hp_error *err);

/* Did a job run since then? */
bool hp_calibration_has(const hp_calibration *c, const char *job, int64_t since_s);

#endif
