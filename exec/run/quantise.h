/* quantise.h - --quantise: from calibration images to the file of an int8 network's constants. */
#ifndef HP_QUANTISE_H
#define HP_QUANTISE_H

#include "exec/run/job.h"

/* Runs the float program over the calibration images, and writes the file on rank 0. Collective: over all
 * ranks. Errors: HP_EUSAGE, HP_EPLAN (not a float inference plan), those of the run and of writing. */
hp_status hp_job_quantise(hp_job *job, hp_error *err);
/* Callback hp_interp_config.observe: passes a task's output to the observer, if there is one. */
hp_status hp_job_observe(void *job, int32_t task, hp_error *err);

#endif
