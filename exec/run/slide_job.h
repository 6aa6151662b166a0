/* slide_job.h - classification of one image by its patches: votes and heat map. Called by infer_job.c
 * together with its own functions; without effect for other data. */
#ifndef HP_SLIDE_JOB_H
#define HP_SLIDE_JOB_H

#include "exec/run/job.h"

/* Collective: over all ranks. Errors: HP_EUSAGE (options that do not fit the data). */
hp_status hp_job_slide_open(hp_job *job, hp_error *err);
/* Logits (n, classes) of samples first .. first + n - 1. Collective: no. */
hp_status hp_job_slide_write(hp_job *job, int64_t first, int64_t n, const float *logits, hp_error *err);
/* All-reduces the votes and completes the heat map. Collective: over all ranks. */
hp_status hp_job_slide_finish(hp_job *job, hp_error *err);
void hp_job_slide_discard(hp_job *job); /* after a failure */

#endif
