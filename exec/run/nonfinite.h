/* nonfinite.h - --on-nan: what a run does about numbers that are not finite, and where the first one was.
 *
 * Where updates wait for the step's metric (fp16, simulate --clip-norm), the `finite` tasks tell all ranks of
 * a gradient that is not finite before any rank changes a weight (plan/lower/lower_update.c), and all ranks
 * skip the step. The weights have not changed, so on a device without streams the step is repeated and every
 * task's results are inspected. Other plans, and devices with streams, can only inspect the gradients. */
#ifndef HP_NONFINITE_H
#define HP_NONFINITE_H

#include "exec/run/job.h"

/* Is the run to skip such steps, and does the plan allow that? Collective: no. Errors: HP_EPLAN, the same on
 * all ranks. */
hp_status hp_job_nonfinite_open(hp_job *job, hp_error *err);
void hp_job_nonfinite_close(hp_job *job);

/* Before a step: saves the running statistics, which a skipped step must not change. Collective: no. */
hp_status hp_job_nonfinite_keep(hp_job *job, hp_error *err);
/* After it: sets job->strange. Collective: over all ranks, which have the same metric. Errors: those of the
 * interpreter and of the communicator. */
hp_status hp_job_nonfinite_look(hp_job *job, const hp_step *step, double loss, hp_error *err);
/* Once it is reported: does the run end here? Collective: no. Errors: HP_EPLAN, the same on all ranks. */
hp_status hp_job_nonfinite_judge(const hp_job *job, int64_t done, hp_error *err);

#endif
