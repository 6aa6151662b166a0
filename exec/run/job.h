/* job.h - one rank of a run: its state, from reading the plan to saving the weights. What a job does is
 * declared by run_train.h, quantise.h, infer_job.h, slide_job.h and run_gather.h. */
#ifndef HP_JOB_H
#define HP_JOB_H

#include "exec/checkpoint/checkpoint.h"
#include "exec/data/image/decoder.h"
#include "exec/run/run_bind.h"
#include "exec/run/options.h"
#include "exec/run/pass.h"
#include "exec/train/loss_scale.h"
#include "exec/yardstick/sampler.h"
#include "machines/quota.h"
#include "plan/store/store.h"

#include <signal.h>

typedef struct hp_job_timing {
    hp_clock clock;
    hp_ring *ring;       /* the rank's trace; NULL: none */
    hp_sampler *sampler; /* samples the yardsticks; NULL: none */
    double start_s;      /* start of the run, by hp_now_s */
    hp_watch *watch;
    hp_patience patience; /* how long a step may take */
} hp_job_timing;

typedef struct hp_job_sink { /* where the results of inference go */
    struct hp_output *file;  /* NULL: not requested, or closed */
    struct hp_votes *votes;  /* classes that patches of an image vote for; NULL: data are not patches */
    struct hp_output *heat;  /* their heat map; NULL: none */
    float *row;              /* buffer of results converted to float32; grows */
    int64_t row_elems;
} hp_job_sink;

typedef struct hp_job_scores {
    double loss, step_s;      /* last loss; median step time */
    hp_loss_scale loss_scale; /* for fp16; value 0: none */
    double sum[HP_METRICS];   /* over all steps */
    double accuracy, eval_loss;
    int64_t eval_labels; /* over which these are means */
    double iou; /* intersection over union of the foreground; NaN without a label map or any foreground */
} hp_job_scores;

typedef struct hp_job_strange { /* nonfinite.c: numbers that are not finite */
    bool looks_first;           /* all ranks know of such gradients before any updates */
    unsigned char *kept;        /* running statistics before the step; NULL: such steps are not left out */
    bool now, gradient;         /* in the last step: loss or gradient not finite; only the gradient */
    bool skipped;               /* the last step changed nothing */
    int64_t in_row, restored;   /* steps skipped since the last that was not, and in this run */
    char first[240],
        of_row[240]; /* the first such number of the last step, and of the first in a row, in words */
} hp_job_strange;

typedef struct hp_job_begin { /* what was done before this run, by the checkpoint that it goes on from */
    int64_t step, updates;    /* updates: of the running statistics */
} hp_job_begin;

typedef struct hp_job_signals {
    const volatile sig_atomic_t *stop, *leave; /* to end at once; to save and end */
} hp_job_signals;

typedef struct hp_job_cores { /* what the rank has of its node's */
    hp_bound_cores bound;
    hp_quota quota; /* --quota */
} hp_job_cores;

typedef struct hp_job_device {
    const hp_device_ops *ops;
    hp_memory memory;
    unsigned char *arena; /* the rank's one allocation for the program, in `memory` */
    int64_t arena_bytes;  /* planned peak: the larger of the training and evaluation programs */
    /* run_gather.c: host views of the weights and the statistics, while it works */
    void *view[HP_BUF_STATE + 1];
} hp_job_device;

typedef struct hp_job_deployed { /* deployed network; else NULL */
    struct hp_constants *constants;
    struct hp_observer *observer; /* set while the program is being observed */
} hp_job_deployed;

typedef struct hp_job_saved {
    hp_checkpoint *checkpoint; /* NULL: none are asked for */
    bool leaves;               /* a checkpoint was asked for by a signal, and is there */
} hp_job_saved;

typedef struct hp_job_hashes { /* --deterministic: of the weights after every step */
    bool wanted, by_param;
} hp_job_hashes;

typedef struct hp_job {
    const hp_exec_options *options;
    hp_job_signals signals;
    hp_comm *comm;
    bool speaker;          /* when all ranks fail together: this one prints the error (hp_job_agree) */
    hp_decoders *decoders; /* NULL: the data are no image files */
    hp_arena *memory;      /* memory of the plan */
    hp_plan plan;
    int32_t role, replica;
    hp_job_cores cores;
    hp_job_device device;
    hp_job_deployed deployed;
    hp_job_pass train, eval;
    int64_t steps; /* number of steps, planned and then done, those before this run too */
    hp_job_begin begin;
    hp_rates rates; /* training's */
    hp_job_saved saved;
    hp_job_hashes hashes;
    hp_job_timing timing;
    hp_job_sink sink;
    hp_job_scores scores;
    hp_job_strange strange;
    int64_t left_out[2]; /* --on-broken skip: images that cannot be read, of training and of evaluation */
} hp_job;

/* The logits tensor: h = w = 1 for a class per image. */
static inline const hp_tensor *hp_job_logits(const hp_job *j) {
    const hp_graph *g = j->plan.graph;
    return &g->tensor[g->layer[g->n_layer - 1].out];
}

/* Reads and checks the plan, then prepares memory, weights, data and devices. The caller owns a zeroed job
 * with options, signals, comm and decoders set, and closes it, comm included, in every case. Collective: over
 * all ranks, which agree on each part's status. */
hp_status hp_job_open(hp_job *job, hp_error *err);
void hp_job_close(hp_job *job);

/* Makes all ranks fail where one fails in a part of the work; job->speaker says whether this one prints.
 * Collective: over all ranks. Returns the status of the first that failed. */
hp_status hp_job_agree(hp_job *job, hp_status mine, hp_error *err);

/* --- run_checkpoint.c: nothing without --checkpoint. Collective: over all ranks --- */

/* After the data are open. Sets `begin` and the scores when the run goes on from a checkpoint. */
hp_status hp_job_checkpoint_open(hp_job *job, hp_error *err);
/* After each step. Sets `leaves`. */
hp_status hp_job_checkpoint_visit(hp_job *job, int64_t done, hp_error *err);
/* Updates of the running statistics so far. Collective: no. */
int64_t hp_job_updates(const hp_job *job, int64_t done);

#endif
