/* law_run.c - one training run of a law test. */
#include "tests/support/exec/law_run.h"

#include "plan/strategy/sequence.h"

const double *law_parameters(hp_arena *arena, const hp_graph *g, uint64_t seed) {
    double *start = HP_NEW(arena, double, ranks_param_elems(g)), *to = start;
    for (int i = 0; i < g->n_param; i++)
        for (int64_t e = 0; e < g->param[i].count; e++) {
            const double u = 2 * hp_rng_uniform(seed, 991 + (uint64_t)i, (uint64_t)e) - 1;
            const int kind = g->param[i].kind;
            if (kind == HP_PARAM_CONV_W || kind == HP_PARAM_LINEAR_W)
                *to++ = u * sqrt(3.0 / (double)g->param[i].fan_in);
            else
                *to++ = kind == HP_PARAM_BN_GAMMA || kind == HP_PARAM_BN_VAR ? 1 + 0.4 * u : 0.3 * u;
        }
    return start;
}

static hp_program *law_program(hp_arena *arena, const law_training *t, const hp_graph *g) {
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    const hp_device_info *device = NULL; /* the CPU stands for any device */
    if (strcmp(t->ops->name, "cpu") != 0)
        assert_int_equal(hp_device_find(t->ops->name, &device, NULL), HP_OK);
    const hp_lower_options o = {
        .mode = HP_MODE_TRAIN, .dtype = t->ops->dtype, .batch = t->batch, .device = device, .place = true};
    if (hp_lower(arena, g, &t->s, &o, &p, &err) != HP_OK || hp_program_check(p, g, &err) != HP_OK)
        fail_msg("seed %llu, %s: %s", (unsigned long long)t->seed,
                 hp_strategy_text(&t->s, (char[HP_STRATEGY_TEXT]){0}), err.text);
    return p;
}

outcome law_run(hp_arena *arena, const law_training *t) {
    const hp_graph *g = hp_strategy_graph(arena, t->g, &t->s);
    outcome out = {.n = ranks_param_elems(g)};
    out.weights = HP_NEW(arena, double, out.n);
    char text[HP_STRATEGY_TEXT];
    hp_strategy_text(&t->s, text);
    ranks_job job = {.g = g,
                     .p = law_program(arena, t, g),
                     .ops = t->ops,
                     .comm = t->comm,
                     .steps = t->steps,
                     .lr = t->lr,
                     .momentum = 0.9,
                     .weight_decay = 1e-4,
                     .seed = t->seed,
                     .first_sample = t->first_sample,
                     .start = t->start ? t->start : law_parameters(arena, t->g, t->seed),
                     .loss_scale = t->loss_scale,
                     .checkpoint = t->checkpoint,
                     .layout = text,
                     .resume = t->resume,
                     .loss = out.loss,
                     /* at a checkpoint replicas may differ */
                     .weights = t->checkpoint && !t->resume ? NULL : out.weights};
    if (run_ranks(&job) != HP_OK)
        fail_msg("seed %llu, %s: %s", (unsigned long long)t->seed, text, job.err.text);
    return out;
}

/* Largest difference of two weights, relative to 1 + weight; NaN if one is. */
static double law_worst(const outcome *a, const outcome *b) {
    double most = 0;
    for (int64_t i = 0; i < a->n; i++) {
        const double d = fabs(a->weights[i] - b->weights[i]) / (1 + fabs(a->weights[i]));
        if (!(d <= most)) most = d;
    }
    return most;
}

hp_strategy law_one_rank(int groups) {
    hp_strategy s = hp_strategy_default();
    s.micro = groups;
    s.sched = groups > 1 ? HP_SCHED_GPIPE : HP_SCHED_LP;
    return s;
}

int law_groups(const hp_strategy *s) {
    return hp_strategy_replicas(s) * hp_strategy_groups(s);
}

void law_close(const law_training *t, const outcome *want, const outcome *have, double worst_loss,
               double worst_weight) {
    char text[HP_STRATEGY_TEXT];
    hp_strategy_text(&t->s, text);
    for (int i = 0; i < t->steps; i++)
        if (!(fabs(want->loss[i] - have->loss[i]) <= worst_loss * (1 + fabs(want->loss[i]))))
            fail_msg("seed %llu, %s, batch %lld: loss %d is %.17g, one rank has %.17g",
                     (unsigned long long)t->seed, text, (long long)t->batch, i, have->loss[i], want->loss[i]);
    if (worst_weight >= 0 && !(law_worst(want, have) <= worst_weight))
        fail_msg("seed %llu, %s: weights differ by %g, bound %g", (unsigned long long)t->seed, text,
                 law_worst(want, have), worst_weight);
}
