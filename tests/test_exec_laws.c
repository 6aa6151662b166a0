/* test_exec_laws.c - the test that matters most: any legal strategy, over random networks, cuts and
 * schedules, gives the losses and weights of one rank with the same grouping of the batch. */
#include "plan/layout.h"
#include "tests/random_net.h"
#include "tests/run_ranks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { STEPS = 3, MAX_RANKS = 16 };

typedef struct outcome {
    double loss[STEPS];
    double *weights;
    int64_t n;
} outcome;

static hp_program *lower_checked(hp_arena *arena, const hp_graph *g, const hp_strategy *s, hp_dtype dtype,
                                 int64_t batch) {
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = dtype, .batch = batch, .place = true};
    if (hp_lower(arena, g, s, &o, &p, &err) != HP_OK || hp_program_check(p, g, &err) != HP_OK)
        fail_msg("%s", err.text);
    return p;
}

/* Parameters to start from: every kind drawn, so that no channel begins on an activation's kink (bias 0),
 * where the rounding of a sum decides about a gradient. */
static const double *drawn_parameters(hp_arena *arena, const hp_graph *g, uint64_t seed) {
    double *start = HP_NEW(arena, double, ranks_param_elems(g)), *to = start;
    for (int i = 0; i < g->n_param; i++)
        for (int64_t e = 0; e < g->param[i].count; e++) {
            const double u = 2 * hp_rng_uniform(seed, 991 + (uint64_t)i, (uint64_t)e) - 1;
            switch (g->param[i].kind) {
            case HP_PARAM_CONV_W:
            case HP_PARAM_LINEAR_W:
                *to++ = u * sqrt(3.0 / (double)g->param[i].fan_in);
                break;
            case HP_PARAM_BN_GAMMA:
            case HP_PARAM_BN_VAR:
                *to++ = 1 + 0.4 * u;
                break;
            default:
                *to++ = 0.3 * u;
                break;
            }
        }
    return start;
}

static outcome run(hp_arena *arena, const hp_graph *g, const hp_strategy *s, const hp_device_ops *ops,
                   int64_t batch, int steps, double lr, uint64_t seed) {
    outcome out = {.n = ranks_param_elems(g)};
    out.weights = HP_NEW(arena, double, out.n);
    ranks_job job = {.g = g,
                     .p = lower_checked(arena, g, s, ops->dtype, batch),
                     .ops = ops,
                     .steps = steps,
                     .lr = lr,
                     .momentum = 0.9,
                     .weight_decay = 1e-4,
                     .seed = seed,
                     .start = drawn_parameters(arena, g, seed),
                     .loss = out.loss,
                     .weights = out.weights};
    if (run_ranks(&job) != HP_OK) fail_msg("%s", job.err.text);
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

static hp_strategy one_rank(int groups) {
    hp_strategy s = hp_strategy_default();
    s.micro = groups;
    s.sched = groups > 1 ? HP_SCHED_GPIPE : HP_SCHED_LP;
    return s;
}

static void holds_on_ref(uint64_t seed, const hp_graph *g, const hp_strategy *s, hp_arena *arena) {
    const int groups = hp_strategy_replicas(s) * hp_strategy_groups(s);
    const int64_t batch = hp_strategy_batch(s, 2 * groups);
    const hp_strategy base = one_rank(groups);
    const outcome want = run(arena, g, &base, &hp_device_ref, batch, STEPS, 0.05, seed);
    const outcome have = run(arena, g, s, &hp_device_ref, batch, STEPS, 0.05, seed);
    char text[HP_STRATEGY_TEXT];
    hp_strategy_text(s, text);
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(want.loss[i] - have.loss[i]) <= 1e-9 * (1 + fabs(want.loss[i]))))
            fail_msg("seed %llu, %s, batch %lld: loss %d is %.17g, one rank has %.17g",
                     (unsigned long long)seed, text, (long long)batch, i, have.loss[i], want.loss[i]);
    if (!(worst(&want, &have) <= 1e-9))
        fail_msg("seed %llu, %s: weights differ by %g", (unsigned long long)seed, text, worst(&want, &have));
}

static int cases(int standard) {
    const char *more = getenv("HPLAN_LAW_CASES"); /* by hand: thousands */
    return more ? atoi(more) : standard;
}

static void any_strategy_reproduces_one_rank_on_ref(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= (uint64_t)cases(250); seed++) {
        dice d = {seed, 1000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 7));
        assert_non_null(g);
        const hp_strategy s = random_strategy_of(&d, g, roll(&d, 1, 6), MAX_RANKS, DRAW_EXACT);
        holds_on_ref(seed, g, &s, arena);
        hp_arena_free(arena);
    }
}

/* The figures of the literature, on small networks: MPI4DL refuses the first (tiles of one replica on tiles
 * of the other), its released code cannot run the third (ranks twice in a group). */
static void published_layouts_reproduce_one_rank(void **state) {
    (void)state;
    static const char *const layouts[] = {
        "stages=2,sp=2x2,sched=gems",         /* Jain, thesis 2023, figure 3.3: 5 ranks */
        "stages=5,sp=2x2,sched=gems",         /* figure 3.4: 8 ranks */
        "stages=6,sp=2x2:2x2,sched=gems",     /* Hy-Fi (Jain et al. 2022), 12 ranks */
        "stages=3,sp=2x2:2x2,sched=gems",     /* README's 9 ranks: tiles overlap in part */
        "stages=5,sp=2x1,sched=gems,gems=4"}; /* an odd number of stages: the middle rank mirrors itself */
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, 300 + i, 8);
        hp_strategy s;
        hp_error err;
        assert_int_equal(hp_strategy_parse(layouts[i], &s, &err), HP_OK);
        holds_on_ref(300 + i, g, &s, arena);
        hp_arena_free(arena);
    }
}

/* One step from equal weights: the sum over a batch of products in float32, taken in another order. The
 * bound: the update is lr * gradient; the gradient's relative error grows with the depth and the length of
 * the sums, n*eps each. The longest sum here is a weight gradient's: 16 samples of 13x13 pixels, 2704 terms.
 */
static void one_step_on_onednn_stays_within_rounding(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= (uint64_t)cases(60); seed++) {
        dice d = {seed, 2000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 6));
        const int groups = roll(&d, 1, 4);
        const hp_strategy base = one_rank(groups), s = random_strategy_of(&d, g, groups, 8, DRAW_EXACT);
        const int64_t batch = hp_strategy_batch(&s, 2 * groups);
        const outcome exact = run(arena, g, &base, &hp_device_ref, batch, 1, 0.01, seed);
        const outcome have = run(arena, g, &s, &hp_device_onednn, batch, 1, 0.01, seed);
        char text[HP_STRATEGY_TEXT];
        hp_strategy_text(&s, text);
        const double eps = 0x1p-24, terms = 4096, depth = g->n_layer;
        const double bound = 0.01 * eps * terms * depth + 4 * eps;
        if (!(fabs(exact.loss[0] - have.loss[0]) <= eps * terms * (1 + fabs(exact.loss[0]))))
            fail_msg("seed %llu, %s: loss %.9g, exact %.9g", (unsigned long long)seed, text, have.loss[0],
                     exact.loss[0]);
        if (!(worst(&exact, &have) <= bound))
            fail_msg("seed %llu, %s: weights differ by %g, bound %g", (unsigned long long)seed, text,
                     worst(&exact, &have), bound);
        hp_arena_free(arena);
    }
}

static void the_same_run_twice_gives_the_same_bits(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = random_net(arena, 5, 6);
    hp_strategy s;
    hp_error err;
    assert_int_equal(hp_strategy_parse("dp=2,stages=2,micro=2,sched=1f1b", &s, &err), HP_OK);
    const outcome a = run(arena, g, &s, &hp_device_onednn, 8, STEPS, 0.05, 5),
                  b = run(arena, g, &s, &hp_device_onednn, 8, STEPS, 0.05, 5);
    assert_memory_equal(a.loss, b.loss, sizeof a.loss);
    assert_memory_equal(a.weights, b.weights, sizeof(double) * (size_t)a.n);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_strategy_reproduces_one_rank_on_ref),
        cmocka_unit_test(published_layouts_reproduce_one_rank),
        cmocka_unit_test(one_step_on_onednn_stays_within_rounding),
        cmocka_unit_test(the_same_run_twice_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
