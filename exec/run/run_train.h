/* run_train.h - runs the steps of a job and reports them. All functions are collective over all ranks. */
#ifndef HP_RUN_TRAIN_H
#define HP_RUN_TRAIN_H

#include "exec/run/job.h"

/* Runs job->steps steps, with a JSON line each on rank 0. Sets the scores. Errors: those of the
 * interpreter. */
hp_status hp_job_train(hp_job *job, hp_error *err);

/* Says on stderr what becomes of the images, once one was read. Rank 0's; collective: no. */
void hp_job_note_images(const hp_job *job);

/* Evaluates the test split with the evaluation program. Sets accuracy, eval_loss and iou. */
hp_status hp_job_eval(hp_job *job, hp_error *err);
/* Prints the final JSON line on rank 0, with every rank's memory and bytes sent. */
hp_status hp_job_report(hp_job *job, hp_error *err);

#endif
