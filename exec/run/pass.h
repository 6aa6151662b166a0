/* pass.h - one program of a job (training, evaluation or inference) with everything that executes it: data,
 * device, interpreter. */
#ifndef HP_PASS_H
#define HP_PASS_H

#include "exec/data/dataset/loader.h"
#include "exec/interp/exec_interp.h"

struct hp_job;

typedef struct hp_job_pass {
    const hp_program *program;
    const hp_role *role;
    hp_device *device;
    hp_dataset *data;  /* NULL: no task loads any */
    hp_loader *loader; /* NULL as data */
    hp_interp *interp; /* NULL until hp_job_pass_start */
    bool repeats;      /* start over when there are more steps than data */
} hp_job_pass;

/* Opens data and device over the job's arena. Collective: no. Errors: those of the data set and of the
 * device. */
hp_status hp_job_pass_open(struct hp_job *job, hp_job_pass *pass, const hp_program *program, hp_split split,
                           hp_error *err);

/* Creates the interpreter, which refers to all other parts of the job: last. Collective: no. */
hp_status hp_job_pass_start(struct hp_job *job, hp_job_pass *pass, hp_error *err);

/* Reopens device and interpreter with the current constants. Collective: over all ranks. */
hp_status hp_job_pass_reopen(struct hp_job *job, hp_job_pass *pass, hp_error *err);

/* Closes what is open; safe on a zeroed pass. */
void hp_job_pass_close(const struct hp_job *job, hp_job_pass *pass);

#endif
