/* test_jitter.c - with jitter, a folded class takes the expected time of its last member. */
#include "sim/engine/jitter.h"
#include "costmodels/jitter_fit.h"
#include "tests/support/sim/random_world.h"
#include "tests/support/plan/law_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Mean 1; for two, 2 Phi(sigma / sqrt 2). */
static void expected_maxima_of_one_and_two_are_the_closed_forms(void **state) {
    (void)state;
    for (int i = 1; i <= 40; i++) {
        const double cv = 0.05 * i;
        assert_true(fabs(hp_jitter_max(cv, 1) - 1) < 1e-12);
        const double sigma = sqrt(log1p(cv * cv));
        assert_true(fabs(hp_jitter_max(cv, 2) - erfc(-sigma / 2)) < 1e-12);
    }
}

typedef struct sample {
    double mean, error; /* error of the mean */
} sample;

static sample mean_of(const double *x, int n) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    for (int i = 0; i < n; i++) squares += (x[i] - sum / n) * (x[i] - sum / n);
    return (sample){sum / n, sqrt(squares / (n - 1) / n)};
}

static void expected_maxima_are_those_of_draws(void **state) {
    (void)state;
    enum { DRAWS = 4000 };
    double most[DRAWS];
    for (int n = 3; n <= 128; n = 2 * n + 1) {
        for (int i = 0; i < DRAWS; i++) {
            most[i] = 0;
            for (int k = 0; k < n; k++)
                most[i] = fmax(most[i], hp_jitter(0.3, (hp_draws){.seed = (uint64_t)n}, i, k));
        }
        const sample s = mean_of(most, DRAWS);
        assert_true(fabs(s.mean - hp_jitter_max(0.3, n)) < 4 * s.error);
    }
}

enum { SEEDS = 100 };

static sample steps_of(const hp_program *p, const hp_graph *g, hp_jitter_process jitter, bool fold) {
    uint64_t seed = 1;
    const hp_machine m = test_machine(p->dp, p->n_role, false);
    const hp_sim_costs costs = {random_seconds, NULL, &seed};
    double step[SEEDS];
    for (int i = 0; i < SEEDS; i++) {
        hp_arena *scratch = hp_arena_new();
        const hp_sim_options o = {.fold = fold,
                                  .jitter = jitter,
                                  .straggler_rank = -1,
                                  .draws.seed = (uint64_t)(i + (fold ? SEEDS : 0))};
        hp_sim_result r;
        hp_error err = {HP_OK, ""};
        if (hp_sim_run(scratch, p, g, &m, &costs, &o, &r, &err) != HP_OK) fail_msg("%s", err.text);
        assert_int_equal(r.simulated, fold ? p->n_role : hp_program_ranks(p));
        step[i] = (double)r.makespan_ns;
        hp_arena_free(scratch);
    }
    return mean_of(step, SEEDS);
}

/* Up to 128 ranks, compared with as many runs of all of them: four standard errors of the two means, plus
 * `model` for sums of draws that are not quite log-normal and parts that wait for each other. */
static void check(const char *strategy, hp_jitter_process jitter, double model) {
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = random_net(arena, 3, 8);
    hp_strategy s;
    hp_error err = {HP_OK, ""};
    if (hp_strategy_parse(strategy, &s, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_program *p = lower_training(arena, g, &s, hp_strategy_batch(&s, 1), false);
    const sample one = steps_of(p, g, jitter, true), all = steps_of(p, g, jitter, false);
    const double off = one.mean / all.mean - 1, noise = hypot(one.error, all.error) / all.mean;
    if (fabs(off) > 4 * noise + model) fail_msg("%s: folded %+.2f%%", strategy, 100 * off);
    hp_arena_free(arena);
}

static void a_folded_class_takes_what_its_last_member_takes(void **state) {
    (void)state;
    const hp_jitter_process tasks = {.task = 0.2};
    static const char *const strategies[] = {"dp=2", "dp=8", "dp=32", "dp=16,micro=4", "dp=128"};
    const bool all = law_all("classes of 128 ranks, and of 32 by their parts");
    for (int i = 0; i < 5 - !all; i++) check(strategies[i], tasks, 0.003);
    static const char *const parts[] = {"dp=8,sp=2x1", "dp=16,stages=2,micro=4", "dp=32,sp=2x2",
                                        "dp=16,stages=4,micro=4,sched=1f1b"};
    for (int i = 0; i < (all ? 4 : 2); i++) check(parts[i], tasks, 0.01);
}

/* A core that is slow for a tenth of a step, a step, or ten steps. */
static void a_folded_class_takes_what_its_slowest_core_takes(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        const hp_jitter_process slow = {0.2, (double[]){1e-3, 1e-2, 1e-1}[i], 0.05};
        check("dp=8", slow, 0.004);
        check("dp=16,micro=4", slow, 0.01);
    }
}

/* --- the slowness of a core --- */

/* The mean is 1 for any task length; the variance is what averaging leaves: that of exp(z) with var z = kept
 * x sigma^2. Draws are of ten consecutive tasks, so that they follow the process over time. */
static void a_core_is_as_slow_as_its_process(void **state) {
    (void)state;
    enum { DRAWS = 4000, TASKS = 10 };
    const hp_jitter_process p = {.cv = 0.3, .tau_s = 0.01};
    static const double lengths[] = {1e-6, 1e-3, 0.01, 0.1};
    double last[DRAWS], squares[DRAWS];
    for (int l = 0; l < 4; l++) {
        for (int i = 0; i < DRAWS; i++) {
            hp_core c = {0};
            int64_t now_ns = 0;
            for (int t = 0; t < TASKS; t++) {
                last[i] =
                    hp_core_slowness(&c, &p, (hp_draws){.seed = (uint64_t)i + 1}, 0, t, now_ns, lengths[l]);
                now_ns += llround(lengths[l] * last[i] * 1e9);
            }
            squares[i] = (last[i] - 1) * (last[i] - 1);
        }
        const sample mean = mean_of(last, DRAWS), variance = mean_of(squares, DRAWS);
        const double kept = hp_jitter_averaged(lengths[l] / p.tau_s), wanted = expm1(kept * log1p(0.3 * 0.3));
        assert_true(fabs(mean.mean - 1) < 4 * mean.error);
        assert_true(fabs(variance.mean - wanted) < 4 * variance.error);
    }
}

/* Short tasks are correlated by exp(-gap / tau) in logarithms; other ranks' are independent. */
static void a_core_forgets_in_its_time(void **state) {
    (void)state;
    enum { DRAWS = 4000 };
    const hp_jitter_process p = {.cv = 0.3, .tau_s = 0.01};
    double own[DRAWS], other[DRAWS];
    for (int gap = 0; gap <= 4; gap++) {
        for (int i = 0; i < DRAWS; i++) {
            hp_core c = {0}, d = {0};
            const hp_draws draws = {.seed = (uint64_t)i + 1};
            const double a = log(hp_core_slowness(&c, &p, draws, 0, 0, 0, 1e-7)),
                         b = log(hp_core_slowness(&c, &p, draws, 0, 1, gap * 5000000, 1e-7)),
                         x = log(hp_core_slowness(&d, &p, draws, 1, 1, 0, 1e-7)), s2 = log1p(0.09);
            own[i] = (a + s2 / 2) * (b + s2 / 2) / s2;
            other[i] = (a + s2 / 2) * (x + s2 / 2) / s2;
        }
        const sample near = mean_of(own, DRAWS), far = mean_of(other, DRAWS);
        assert_true(fabs(near.mean - exp(-0.5 * gap)) < 4 * near.error);
        assert_true(fabs(far.mean) < 4 * far.error);
    }
}

/* A mirrored draw is equally far on the other side. */
static void mirrored_draws_mirror(void **state) {
    (void)state;
    const hp_jitter_process p = {.cv = 0.3, .tau_s = 0.01};
    hp_core a = {0}, b = {0};
    for (int t = 0; t < 100; t++) {
        const int64_t now_ns = t * INT64_C(100000000);
        const double x = hp_core_slowness(&a, &p, (hp_draws){1, false}, 0, t, now_ns, 0.02),
                     y = hp_core_slowness(&b, &p, (hp_draws){1, true}, 0, t, now_ns, 0.02);
        if (t == 0) assert_true(fabs(log(x * y) + log1p(0.09) * hp_jitter_averaged(2)) < 1e-12);
    }
    assert_true(
        fabs(hp_jitter(0.3, (hp_draws){1, false}, 0, 1) * hp_jitter(0.3, (hp_draws){1, true}, 0, 1) * 1.09 -
             1) < 1e-12);
}

/* 1 for an instant, 2/x for a long time, and smooth where the series takes over. */
static void averaging_keeps_what_the_closed_form_says(void **state) {
    (void)state;
    assert_true(fabs(hp_jitter_averaged(0) - 1) < 1e-12);
    assert_true(fabs(hp_jitter_averaged(1) - 2 * exp(-1)) < 1e-12);
    assert_true(fabs(hp_jitter_averaged(1e4) * 1e4 / 2 - 1) < 1e-3);
    assert_true(fabs(hp_jitter_averaged(1e-3 * (1 + 1e-9)) - hp_jitter_averaged(1e-3 * (1 - 1e-9))) < 1e-6);
    for (double x = 1e-4; x < 1e3; x *= 1.3) assert_true(hp_jitter_averaged(1.3 * x) < hp_jitter_averaged(x));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expected_maxima_of_one_and_two_are_the_closed_forms),
        cmocka_unit_test(expected_maxima_are_those_of_draws),
        cmocka_unit_test(a_folded_class_takes_what_its_last_member_takes),
        cmocka_unit_test(a_folded_class_takes_what_its_slowest_core_takes),
        cmocka_unit_test(a_core_is_as_slow_as_its_process),
        cmocka_unit_test(a_core_forgets_in_its_time),
        cmocka_unit_test(mirrored_draws_mirror),
        cmocka_unit_test(averaging_keeps_what_the_closed_form_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
