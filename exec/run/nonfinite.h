/* nonfinite.h - --on-nan: what a run does about numbers that are not finite, and where the first of them was.
 *
 * Where the plan's updates wait for the step's metric (fp16, simulate --clip-norm), its tasks `finite` have told all
 * ranks of a gradient that is not finite before any of them changed a weight (plan/lower/lower_update.c): the step is left
 * out by all. The weights are then as they were, and where all work is complete on return the step is done once more
 * with a look at what every task writes. Other plans, and devices with streams, have only the gradients to look at. */
#ifndef HP_NONFINITE_H
#define HP_NONFINITE_H

#include "exec/run/job.h"

/* Is the run to leave out such steps, and does the plan allow that? Collective: no. Errors: HP_EPLAN, the same on all
 * ranks. */
hp_status hp_job_nonfinite_open(hp_job *job, hp_error *err);
void hp_job_nonfinite_close(hp_job *job);

/* Before a step: keeps the running statistics, which a step that is left out is not to change. Collective: no. */
hp_status hp_job_nonfinite_keep(hp_job *job, hp_error *err);
/* After it: sets job->strange. Collective: over all ranks, which have the same metric. Errors: those of the
 * interpreter and of the communicator. */
hp_status hp_job_nonfinite_look(hp_job *job, const hp_step *step, double loss, hp_error *err);
/* Once it is reported: does the run end here? Collective: no. Errors: HP_EPLAN, the same on all ranks. */
hp_status hp_job_nonfinite_judge(const hp_job *job, int64_t done, hp_error *err);

#endif
