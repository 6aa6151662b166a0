/* test_standin_nets.c - networks trained on a GPU, or on what stands in for one: any legal strategy, its
 * messages by way of the host, gives the loss and weights of one rank on the reference within rounding. Ranks
 * are threads that share the GPU and its streams. */
#include "exec/cuda/device.h"
#include "plan/precision.h"
#include "tests/random_net.h"
#include "tests/run_ranks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { STEPS = 3, MAX_RANKS = 6 };

typedef struct outcome {
    double loss[STEPS];
    double *weights;
    int64_t n;
} outcome;

/* Parameters to start from: every kind drawn, so that no channel begins on an activation's kink. */
static const double *drawn_parameters(hp_arena *arena, const hp_graph *g, uint64_t seed) {
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

static hp_program *lowered(hp_arena *arena, const hp_graph *g, const hp_strategy *s, const hp_device_ops *ops,
                           int64_t batch) {
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    const hp_lower_options o = {
        .mode = HP_MODE_TRAIN, .dtype = ops->dtype, .batch = batch, .device = ops->name, .place = true};
    if (hp_lower(arena, g, s, &o, &p, &err) != HP_OK || hp_program_check(p, g, &err) != HP_OK)
        fail_msg("%s", err.text);
    return p;
}

static hp_comm *staged(hp_comm *inner, const hp_device_ops *ops) {
    return hp_comm_staged(inner, ops->memory);
}

static double scale_of(const hp_graph *g) {
    return hp_graph_scales_loss(g) ? 256 : 1;
}

static outcome run(hp_arena *arena, const hp_graph *g, const hp_strategy *s, const hp_device_ops *ops,
                   int64_t batch, int steps, uint64_t seed) {
    outcome out = {.n = ranks_param_elems(g)};
    out.weights = HP_NEW(arena, double, out.n);
    ranks_job job = {.g = g,
                     .p = lowered(arena, g, s, ops, batch),
                     .ops = ops,
                     .comm = ops->memory->host ? NULL : staged,
                     .steps = steps,
                     .lr = 0.01,
                     .momentum = 0.9,
                     .weight_decay = 1e-4,
                     .seed = seed,
                     .start = drawn_parameters(arena, g, seed),
                     .loss_scale = scale_of(g),
                     .loss = out.loss,
                     .weights = out.weights};
    char text[HP_STRATEGY_TEXT];
    hp_strategy_text(s, text);
    if (run_ranks(&job) != HP_OK) fail_msg("seed %llu, %s: %s", (unsigned long long)seed, text, job.err.text);
    return out;
}

static double worst(const outcome *a, const outcome *b) {
    double most = 0;
    for (int64_t i = 0; i < a->n; i++) {
        const double d = fabs(a->weights[i] - b->weights[i]) / (1 + fabs(a->weights[i]));
        if (!(d <= most)) most = d;
    }
    return most;
}

static hp_strategy one_rank(int groups, int32_t prec) {
    hp_strategy s = hp_strategy_default();
    s.prec = prec;
    s.micro = groups;
    s.sched = groups > 1 ? HP_SCHED_GPIPE : HP_SCHED_LP;
    return s;
}

static hp_strategy by_way_of_the_host(hp_strategy s) {
    for (int t = 0; t < HP_TRAFFICS; t++) s.comm[t] = 1 + HP_BACKEND_MPI;
    return s;
}

static int cases(int standard) {
    const char *more = getenv("HPLAN_LAW_CASES"); /* by hand: thousands */
    return more ? atoi(more) : standard;
}

/* Of a rounding to how maps are stored, or factors in tf32. */
static double eps_of(int32_t prec) {
    static const double eps[HP_PRECS] = {
        [HP_PREC_TF32] = 0x1p-11, [HP_PREC_BF16] = 0x1p-9, [HP_PREC_FP16] = 0x1p-11};
    return eps[prec];
}

/* Length of the difference of two updates over that of one. */
static double update_off(const hp_graph *g, const outcome *exact, const outcome *have, const double *start) {
    double off = 0, all = 0;
    int64_t at = 0;
    for (int i = 0; i < g->n_param; i++)
        for (int64_t e = 0; e < g->param[i].count; e++, at++) {
            if (!hp_param_trained(&g->param[i])) continue;
            off += pow(exact->weights[at] - have->weights[at], 2);
            all += pow(exact->weights[at] - start[at], 2);
        }
    return all > 0 ? sqrt(off / all) : off;
}

/* The bound of test_exec_laws.c: a step's update is lr * gradient, whose relative error grows with the depth
 * and the length of the sums. In low precision, what lies close to the middle of two numbers is rounded to
 * one or the other, and a maximum or a kink may go the other way: there the whole update is looked at. */
static void holds(uint64_t seed, const hp_graph *g, const hp_strategy *s, int groups, hp_arena *arena) {
    const hp_strategy base = one_rank(groups, g->prec), there = by_way_of_the_host(*s);
    const int64_t batch = hp_strategy_batch(s, 2 * groups);
    const outcome exact = run(arena, g, &base, &hp_device_ref, batch, 1, seed);
    const outcome have = run(arena, g, &there, &hp_device_cuda, batch, 1, seed);
    const double eps = 0x1p-24, terms = 4096, low = eps_of(g->prec),
                 bound = 0.01 * (eps * terms + 4 * low) * g->n_layer + 4 * eps;
    char text[HP_STRATEGY_TEXT];
    hp_strategy_text(s, text);
    if (!(fabs(exact.loss[0] - have.loss[0]) <= (eps * terms + 4 * low) * (1 + fabs(exact.loss[0]))))
        fail_msg("seed %llu, %s: loss %.9g, exact %.9g", (unsigned long long)seed, text, have.loss[0],
                 exact.loss[0]);
    if (low > 0) {
        const double off = update_off(g, &exact, &have, drawn_parameters(arena, g, seed));
        if (!(off <= 64 * low))
            fail_msg("seed %llu, %s: the update is off by %g of it", (unsigned long long)seed, text, off);
        return;
    }
    if (!(worst(&exact, &have) <= bound))
        fail_msg("seed %llu, %s: weights differ by %g, bound %g", (unsigned long long)seed, text,
                 worst(&exact, &have), bound);
}

static void one_rank_stays_within_rounding(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= (uint64_t)cases(20); seed++) {
        dice d = {seed, 2000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 6));
        const int groups = roll(&d, 1, 3);
        const hp_strategy s = one_rank(groups, HP_PREC_FP32);
        holds(seed, g, &s, groups, arena);
        hp_arena_free(arena);
    }
}

static void any_strategy_stays_within_rounding(void **state) {
    (void)state;
    for (uint64_t seed = 101; seed <= 100 + (uint64_t)cases(20); seed++) {
        dice d = {seed, 2000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 6));
        const int groups = roll(&d, 1, 4);
        const hp_strategy s = random_strategy_of(&d, g, groups, MAX_RANKS, DRAW_EXACT);
        holds(seed, g, &s, groups, arena);
        hp_arena_free(arena);
    }
}

static void any_strategy_in_low_precision_stays_within_rounding(void **state) {
    (void)state;
    static const int32_t low[] = {HP_PREC_TF32, HP_PREC_BF16, HP_PREC_FP16};
    for (uint64_t seed = 301; seed <= 300 + (uint64_t)cases(24); seed++) {
        dice d = {seed, 2000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 6));
        const int groups = roll(&d, 1, 4), prec = low[seed % 3];
        hp_strategy s = random_strategy_of(&d, g, groups, MAX_RANKS, DRAW_EXACT);
        s.prec = prec;
        holds(seed, hp_graph_train_in(arena, g, prec), &s, groups, arena);
        hp_arena_free(arena);
    }
}

static void the_same_run_twice_gives_the_same_bits(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = random_net(arena, 5, 6);
    const hp_strategy s = one_rank(2, HP_PREC_FP32);
    const outcome a = run(arena, g, &s, &hp_device_cuda, 8, STEPS, 5),
                  b = run(arena, g, &s, &hp_device_cuda, 8, STEPS, 5);
    assert_memory_equal(a.loss, b.loss, sizeof a.loss);
    assert_memory_equal(a.weights, b.weights, sizeof(double) * (size_t)a.n);
    hp_arena_free(arena);
}

/* The GPU is opened once, before ranks share it. */
static int open_gpu(void **state) {
    (void)state;
    hp_cuda *c;
    hp_error err;
    return hp_cuda_open(&c, &err) == HP_OK ? 0 : 1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_stays_within_rounding),
        cmocka_unit_test(any_strategy_stays_within_rounding),
        cmocka_unit_test(any_strategy_in_low_precision_stays_within_rounding),
        cmocka_unit_test(the_same_run_twice_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, open_gpu, NULL);
}
