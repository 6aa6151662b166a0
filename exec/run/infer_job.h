/* infer_job.h - the parts of a job that only inference needs: the network's constants and the output file. */
#ifndef HP_INFER_JOB_H
#define HP_INFER_JOB_H

#include "exec/run/job.h"

struct hp_constants;

/* Opens the constants of a deployed network, and calibrates them if the images are synthetic. Collective: no,
 * all ranks compute the same bits. Errors: HP_EDATA (no qparams). */
hp_status hp_job_constants(hp_job *job, hp_error *err);
/* Constants from the same source for another deployment of the network, not calibrated. */
hp_status hp_job_constants_of(const hp_job *job, const hp_graph *g, struct hp_constants **c, hp_error *err);

/* --output: creates the file on rank 0 and opens it on the others. Collective: over all ranks. */
hp_status hp_job_output_open(hp_job *job, hp_error *err);
/* Callback hp_interp_config.store: writes a box of results. Collective: no. */
hp_status hp_job_output_write(void *job, int32_t iter, int32_t micro, const void *data, const hp_box *box,
                              hp_dtype dtype, hp_error *err);
/* Completes the file and gives it its final name. Collective: over all ranks. */
hp_status hp_job_output_finish(hp_job *job, hp_error *err);
void hp_job_output_discard(hp_job *job); /* after a failure; no effect after finish */

#endif
