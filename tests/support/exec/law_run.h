/* law_run.h - one training run of a law test: a network by a strategy on a device, with all ranks as threads;
 * its results, and how far two results are apart. */
#ifndef HP_TESTS_LAW_RUN_H
#define HP_TESTS_LAW_RUN_H

#include "plan/strategy/layout.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/exec/run_ranks.h"
#include "tests/support/plan/law_cases.h"
#include "plan/lower/lower.h"
#include "plan/check/check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { LAW_STEPS = 3 };

typedef struct law_training {
    const hp_graph *g;
    hp_strategy s;
    const hp_device_ops *ops;
    hp_comm *(*comm)(hp_comm *inner, const hp_memory *memory); /* see ranks_job; NULL */
    int64_t batch, first_sample;                               /* see ranks_job */
    int steps;                                                 /* at most LAW_STEPS */
    double lr, loss_scale;
    uint64_t seed;
    const double *start;    /* parameters; NULL: law_parameters */
    const char *checkpoint; /* as ranks_job */
    bool resume;
} law_training;

typedef struct outcome {
    double loss[LAW_STEPS];
    double *weights; /* all weights of the network, in order */
    int64_t n;
} outcome;

/* Initial parameters of every kind, drawn so that no channel starts on an activation's kink (bias 0), where
 * the rounding of a sum would decide a gradient. */
const double *law_parameters(hp_arena *arena, const hp_graph *g, uint64_t seed);
outcome law_run(hp_arena *arena, const law_training *t);

/* One rank that splits the batch into that many groups. */
hp_strategy law_one_rank(int groups);
int law_groups(const hp_strategy *s);

/* Fails if losses, or (worst_weight >= 0) weights, are further apart. */
void law_close(const law_training *t, const outcome *want, const outcome *have, double worst_loss,
               double worst_weight);

#endif
