/* test_error_fit.c - intervals from fitted errors contain nine in ten further errors, for long and short
 * steps; without runs, the prior holds; a single outlier does not widen them all. */
#include "costmodels/error_fit.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const double Z = 1.6448536;

static double drawn(uint64_t seed, uint64_t i, double relative, double seconds, double step_s) {
    return hypot(relative, seconds / step_s) * hp_rng_normal(seed, i, 1);
}

static double step_of(uint64_t seed, uint64_t i) {
    return 1e-3 * pow(300, (double)hp_rng_below(seed, i, 2, 1000) / 1000); /* 1 to 300 ms */
}

static double share_inside(double relative, double seconds, int held_runs) {
    enum { TABLES = 60, LATER = 200 };
    int inside = 0;
    for (uint64_t t = 0; t < TABLES; t++) {
        hp_held held[64];
        for (int i = 0; i < held_runs; i++) {
            const double step_s = step_of(7 + t, (uint64_t)i);
            held[i] = (hp_held){drawn(7 + t, (uint64_t)i, relative, seconds, step_s), step_s};
        }
        const hp_step_error fit = hp_error_fit(held, held_runs);
        for (uint64_t i = 0; i < LATER; i++) {
            const double step_s = step_of(1007 + t, i);
            inside += fabs(drawn(1007 + t, i, relative, seconds, step_s)) <= Z * hp_error_at(&fit, step_s);
        }
    }
    return (double)inside / (TABLES * LATER);
}

static void intervals_hold_nine_in_ten(void **state) {
    (void)state;
    static const struct { double relative, seconds; } truth[] = {{0.05, 1e-4}, {0.03, 5e-4}, {0.1, 2e-5}};
    for (int i = 0; i < 3; i++)
        for (int runs = 6; runs <= 60; runs *= 3) {
            const double share = share_inside(truth[i].relative, truth[i].seconds, runs);
            if (share < (runs < 10 ? 0.8 : 0.84) || share > 0.97)
                fail_msg("%g and %g s, %d runs: %g inside", truth[i].relative, truth[i].seconds, runs, share);
        }
}

static void few_runs_are_drawn_towards_the_prior(void **state) {
    (void)state;
    const hp_step_error none = hp_error_fit(NULL, 0);
    assert_true(fabs(none.relative / hp_error_prior.relative - 1) < 0.01);
    assert_true(fabs(none.seconds / hp_error_prior.seconds - 1) < 0.01);
    const hp_held exact = {0, 1};
    const hp_step_error one = hp_error_fit(&exact, 1);
    assert_true(one.relative > 0.03 && one.relative < hp_error_prior.relative);
}

static void one_far_run_says_little(void **state) {
    (void)state;
    hp_held held[16];
    for (uint64_t i = 0; i < 16; i++) held[i] = (hp_held){drawn(3, i, 0.04, 0, 1), 1};
    const hp_step_error near = hp_error_fit(held, 16);
    held[15].log_error = 1;
    const hp_step_error far = hp_error_fit(held, 16);
    assert_true(far.relative > near.relative && far.relative < 1.3 * near.relative);
}

/* Errors of short steps say nothing about long ones. */
static void seconds_are_told_from_parts(void **state) {
    (void)state;
    hp_held held[24];
    for (uint64_t i = 0; i < 24; i++) {
        const double step_s = i % 2 ? 2e-3 : 0.2;
        held[i] = (hp_held){drawn(5, i, 0.03, 5e-4, step_s), step_s};
    }
    const hp_step_error fit = hp_error_fit(held, 24);
    assert_true(hp_error_at(&fit, 0.2) < 0.06 && hp_error_at(&fit, 2e-3) > 0.15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_hold_nine_in_ten),
        cmocka_unit_test(few_runs_are_drawn_towards_the_prior),
        cmocka_unit_test(one_far_run_says_little),
        cmocka_unit_test(seconds_are_told_from_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
