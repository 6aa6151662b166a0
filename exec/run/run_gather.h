/* run_gather.h - collects what is distributed over ranks: running statistics and trained parameters.
 * Functions that return a status are collective over all ranks, unless they say otherwise. */
#ifndef HP_RUN_GATHER_H
#define HP_RUN_GATHER_H

#include "exec/run/job.h"

/* Makes the running statistics the true values, in place on every rank that holds them; `own`
 * (hp_job_state_bytes) saves this rank's for hp_job_state_restore. The communicator has joined the plan's
 * program. */
hp_status hp_job_state_sum(hp_job *job, unsigned char *own, hp_error *err);
/* Collective: no. */
hp_status hp_job_state_restore(hp_job *job, const unsigned char *own, hp_error *err);
int64_t hp_job_state_bytes(const hp_job *job);
/* Writes the whole network's weights to --save on rank 0. Errors: HP_EPLAN (the last loss is not finite: an
 * earlier file stays; the ranks do not hold every parameter exactly once), those of writing and of the
 * communicator. */
hp_status hp_job_save(hp_job *job, hp_error *err);

#endif
