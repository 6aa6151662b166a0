/* test_exec_laws.c - the test that matters most: any legal strategy, over random networks, cuts and
 * schedules, gives the losses and weights of one rank with the same grouping of the batch. */
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

static void any_strategy_reproduces_one_rank_on_ref(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        dice d = {seed, 1000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 7));
        assert_non_null(g);
        const int groups = roll(&d, 1, 6), batch = groups * roll(&d, 1, 3);
        const hp_strategy base = one_rank(groups), s = random_strategy(&d, g, groups, MAX_RANKS);
        const outcome want = run(arena, g, &base, &hp_device_ref, batch, STEPS, 0.05, seed);
        const outcome have = run(arena, g, &s, &hp_device_ref, batch, STEPS, 0.05, seed);
        char text[HP_STRATEGY_TEXT];
        hp_strategy_text(&s, text);
        for (int i = 0; i < STEPS; i++)
            if (!(fabs(want.loss[i] - have.loss[i]) <= 1e-9 * (1 + fabs(want.loss[i]))))
                fail_msg("seed %llu, %s, batch %d: loss %d is %.17g, one rank has %.17g",
                         (unsigned long long)seed, text, batch, i, have.loss[i], want.loss[i]);
        if (!(worst(&want, &have) <= 1e-9))
            fail_msg("seed %llu, %s: weights differ by %g", (unsigned long long)seed, text,
                     worst(&want, &have));
        hp_arena_free(arena);
    }
}

/* One step from equal weights: the sum over a batch of products in float32, taken in another order. The
 * bound: the update is lr * gradient; the gradient's relative error grows with the depth and the length of
 * the sums, n*eps each. The longest sum here is a weight gradient's: 16 samples of 13x13 pixels, 2704 terms.
 */
static void one_step_on_onednn_stays_within_rounding(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        dice d = {seed, 2000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 6));
        const int groups = roll(&d, 1, 4), batch = groups * roll(&d, 2, 4);
        const hp_strategy base = one_rank(groups), s = random_strategy(&d, g, groups, 8);
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
        cmocka_unit_test(one_step_on_onednn_stays_within_rounding),
        cmocka_unit_test(the_same_run_twice_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
