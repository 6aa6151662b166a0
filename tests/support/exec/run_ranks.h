/* run_ranks.h - runs a program on all its ranks, as threads, on random samples: losses, weights, spans. */
#ifndef HP_TESTS_RUN_RANKS_H
#define HP_TESTS_RUN_RANKS_H

#include "exec/data/weights/constants.h"
#include "exec/interp/exec_interp.h"
#include "base/rng.h"
#include "tests/support/exec/ranks_weights.h"
#include "tests/support/exec/thread_comm.h"

/* Limit in programs that clip gradients: networks of a few layers have norms on either side of it. */
#define RANKS_CLIP_NORM 0.5

typedef struct ranks_job {
    const hp_graph *g;
    const hp_program *p;
    const hp_device_ops *ops;
    int steps;
    double lr, momentum, weight_decay;
    double lr_falls; /* decrease of the learning rate per step */
    uint64_t seed;
    const double *start;  /* per graph parameter element, all in order; NULL: drawn from the seed */
    const char *ring_dir; /* not NULL: spans go to ring_dir/rank-N.ring */
    /* > 1: a micro-batch holds micro-batch j of that many replicas: the grouping of bn=all. */
    int joined_replicas;
    int64_t first_sample; /* the batch is part of a larger one and starts at this sample */
    /* for deployed graphs: weights file, NULL: drawn from the seed; quantisation of every
     * tensor that needs it */
    const char *constants;
    /* Puts another communicator in front of the rank's own, which it takes over; NULL: none. */
    hp_comm *(*comm)(hp_comm *inner, const hp_memory *memory);
    bool bytes; /* images are bytes even for other networks */
    double loss_scale;
    const hp_qparam *qparam;
    const char *checkpoint; /* folder, saved to after the last step; NULL: no checkpoint */
    const char *layout;     /* equal for runs of the same plan */
    bool resume;            /* resumes from the folder: earlier steps are skipped */
    /* results */
    double *loss;    /* steps */
    double *output;  /* deployed: the network's output in the last step, (batch, h, w, c) */
    double *weights; /* NULL: not wanted, ranks may differ; else every parameter of the graph, in order, with
                      * running statistics summed over their homes */
    hp_status status;
    hp_error err;
    /* inside */
    thread_world *world;
    hp_weights *held; /* per rank: copies of its weights and statistics at the end */
} ranks_job;

hp_status run_ranks(ranks_job *job);

#endif
