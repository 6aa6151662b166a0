/* job.h - one rank of a run: everything it holds, from reading the plan to saving the weights. */
#ifndef HP_EXEC_JOB_H
#define HP_EXEC_JOB_H

#include "exec/data/dataset/loader.h"
#include "exec/data/weights/weights.h"
#include "exec/interp/interp.h"
#include "exec/run/loss_scale.h"
#include "exec/run/options.h"
#include "plan/store/store.h"

typedef struct hp_job_pass { /* a program and what executes it */
    const hp_program *program;
    const hp_role *role;
    hp_device *device;
    hp_dataset *data;
    hp_loader *loader;
    hp_interp *interp;
    bool repeats; /* start over when there are more steps than data */
} hp_job_pass;

typedef struct hp_job {
    const hp_exec_options *options;
    const volatile sig_atomic_t *stop;
    hp_comm *comm;
    hp_arena *memory; /* memory of the plan */
    hp_plan plan;
    int32_t role, replica;
    const hp_device_ops *ops;
    hp_memory there;              /* the device's memory */
    unsigned char *arena;         /* the rank's one allocation for the program, there */
    void *view[HP_BUF_STATE + 1]; /* gather.c: host views of the weights and the statistics, while it works */
    int64_t arena_bytes;          /* planned peak: the larger of the training and evaluation programs */
    hp_clock clock;
    hp_ring *ring;
    hp_watch *watch;
    hp_patience patience;
    struct hp_constants *constants; /* of a deployed network, else NULL */
    struct hp_output *output;       /* NULL: not requested, or closed */
    struct hp_votes *votes;         /* of the patches of an image; NULL: data are not patches */
    struct hp_output *heat;         /* their heat map; NULL: none */
    float *row;                     /* buffer of one output row; grows */
    int64_t row_elems;
    hp_job_pass train, eval;
    int64_t steps;                /* number of steps, planned and then done */
    struct hp_observer *observer; /* set while a deployed program is being observed */
    double loss, step_s;          /* last loss; median step time */
    hp_loss_scale loss_scale;     /* of fp16; value 0: none */
    double sum[HP_METRICS];       /* over all steps */
    double accuracy, eval_loss;
    double iou; /* intersection over union of the foreground; NaN without a label map or any foreground */
} hp_job;

/* The logits tensor: h = w = 1 for a class per image. */
static inline const hp_tensor *hp_job_logits(const hp_job *j) {
    const hp_graph *g = j->plan.graph;
    return &g->tensor[g->layer[g->n_layer - 1].out];
}

/* Reads and checks the plan, then prepares memory, weights, data and devices. The caller owns a zeroed job
 * with options, stop and comm set, and closes it, comm included, in every case. Collective: over all ranks
 * (they agree on each part's status; when one rank fails all do, and *speaker says whether this one
 * prints). */
hp_status hp_job_open(hp_job *job, bool *speaker, hp_error *err);
void hp_job_close(hp_job *job);

/* Opens one program with its own device, loader and interpreter over the job's arena. Collective: no. */
hp_status hp_job_pass_open(hp_job *job, hp_job_pass *pass, const hp_program *program, hp_split split,
                           hp_error *err);
void hp_job_pass_close(const hp_job *job, hp_job_pass *pass);

/* infer_job.c: opens the constants of a deployed network, and calibrates them if the images are synthetic.
 * Collective: no, all ranks compute the same bits. Errors: HP_EDATA (no qparams). */
hp_status hp_job_constants(hp_job *job, hp_error *err);
/* Constants from the same source for another deployment of the network, not calibrated. */
hp_status hp_job_constants_of(const hp_job *job, const hp_graph *g, struct hp_constants **c, hp_error *err);
/* quantise.c: --quantise. Collective: over all ranks. */
hp_status hp_job_quantise(hp_job *job, hp_error *err);
hp_status hp_job_observe(void *job, int32_t task, hp_error *err);
/* Reopens a pass's device and interpreter with the current constants. */
hp_status hp_job_pass_reopen(hp_job *job, hp_job_pass *pass, hp_error *err);

/* infer_job.c: --output: creates the file, writes boxes (hp_interp_config.store), renames it. Open and finish
 * are collective, over all ranks; *speaker as in hp_job_open. */
hp_status hp_job_output_open(hp_job *job, bool *speaker, hp_error *err);
hp_status hp_job_output_write(void *job, int32_t iter, int32_t micro, const void *data, const hp_box *box,
                              hp_dtype dtype, hp_error *err);
hp_status hp_job_output_finish(hp_job *job, hp_error *err);
void hp_job_output_discard(hp_job *job); /* after a failure; no effect after finish */

/* slide_job.c: classification by patches: votes and heat map. As above; logits are of samples first ..
 * first+n-1. */
hp_status hp_job_slide_open(hp_job *job, bool *speaker, hp_error *err);
hp_status hp_job_slide_write(hp_job *job, int64_t first, int64_t n, const float *logits, hp_error *err);
hp_status hp_job_slide_finish(hp_job *job, hp_error *err);
void hp_job_slide_discard(hp_job *job);

/* train.c: runs the steps, with a JSON line each; then evaluates the test split. Collective: over all
 * ranks. */
hp_status hp_job_train(hp_job *job, hp_error *err);
hp_status hp_job_eval(hp_job *job, hp_error *err);
hp_status hp_job_report(hp_job *job, hp_error *err);

/* gather.c. Collective: over all ranks. */
/* Makes the running statistics the true values, in place on every rank that holds them; `own` (the role's
 * state bytes) saves this rank's for hp_job_state_restore. The communicator has joined the plan's program. */
hp_status hp_job_state_sum(hp_job *job, unsigned char *own, hp_error *err);
hp_status hp_job_state_restore(hp_job *job, const unsigned char *own, hp_error *err);
int64_t hp_job_state_bytes(const hp_job *job);
/* Writes the whole network's weights on rank 0. */
hp_status hp_job_save(hp_job *job, hp_error *err);

#endif
