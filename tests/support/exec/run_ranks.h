/* run_ranks.h - runs a program on all its ranks, as threads, on random samples: losses, weights, spans. */
#ifndef HP_TESTS_RUN_RANKS_H
#define HP_TESTS_RUN_RANKS_H

#include "exec/data/weights/constants.h"
#include "exec/interp/exec_interp.h"
#include "base/rng.h"
#include "tests/support/exec/ranks_weights.h"
#include "tests/support/exec/thread_comm.h"

/* Of programs that clip gradients: networks of a few layers have longer ones, and shorter ones. */
#define RANKS_CLIP_NORM 0.5

typedef struct ranks_job {
    const hp_graph *g;
    const hp_program *p;
    const hp_device_ops *ops;
    int steps;
    double lr, momentum, weight_decay;
    double lr_falls; /* by this much from step to step */
    uint64_t seed;
    const double *start;  /* per graph parameter element, all in order; NULL: drawn from the seed */
    const char *ring_dir; /* not NULL: spans go to ring_dir/rank-N.ring */
    /* > 1: a micro-batch holds what micro-batch j of that many replicas would: the grouping of bn=all. */
    int joined_replicas;
    int64_t first_sample; /* the batch is the samples from there on of a larger one */
    /* of deployed graphs: weights file, NULL: drawn from the seed; quantisation of every tensor that wants it
     */
    const char *constants;
    /* Puts another communicator in front of the rank's own, which it takes over; NULL: none. */
    hp_comm *(*comm)(hp_comm *inner, const hp_memory *memory);
    bool bytes; /* images are bytes for others too */
    double loss_scale;
    const hp_qparam *qparam;
    const char *checkpoint; /* folder: saved after the last step; NULL: not */
    const char *layout;     /* the same of runs by the same plan */
    bool resume;            /* from what is there: the steps before are left out */
    /* results */
    double *loss;   /* steps */
    double *output; /* deployed: what the network puts out, (batch, h, w, c) of the last step */
    double *
        weights; /* NULL: not wanted, ranks may differ; else every parameter of the graph, in order; running statistics summed over their homes */
    hp_status status;
    hp_error err;
    /* inside */
    thread_world *world;
    hp_weights *held; /* per rank: copies of its weights and statistics at the end */
} ranks_job;

hp_status run_ranks(ranks_job *job);

#endif
