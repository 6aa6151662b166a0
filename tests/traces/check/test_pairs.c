/* test_pairs.c - laws of races: a textbook's paired t test; rounds cancel; the fastest plan is dropped as
 * rarely as promised; clearly slower plans are dropped soon. */
#include "tests/support/traces/trace_fixture.h"

#include "base/rng.h"
#include "traces/check/pairs.h"

#include <math.h>
#include <string.h>

enum { PLANS = 4, ROUNDS = 10, RACES = 2000 };

static void assert_near(double got, double want, double tolerance) {
    assert_true(fabs(got - want) <= tolerance);
}

typedef struct world {
    double slower[PLANS]; /* log of the step relative to the first plan's */
    double noise[PLANS];  /* relative spread between rounds */
} world;

/* Rounds differ by 30 %, as on a shared machine. */
static void draw(const world *w, uint64_t seed, double *step_s) {
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < PLANS; i++)
            step_s[r * PLANS + i] = exp(0.3 * hp_rng_normal(seed, 99, (uint64_t)r) + w->slower[i] +
                                        w->noise[i] * hp_rng_normal(seed, (uint64_t)i, (uint64_t)r));
}

/* Is plan 0 dropped within that many rounds? */
static bool loses(const double *all, int i, int rounds, bool naive) {
    double step_s[ROUNDS * PLANS];
    bool live[PLANS] = {true, true, true, true};
    memcpy(step_s, all, sizeof step_s);
    for (int r = HP_RACE_FIRST; r <= rounds && live[i]; r++) {
        const hp_pairs p = {PLANS, r, step_s};
        const int best = hp_race_best(&p, live);
        const hp_pair pair = hp_pairs_of(&p, NULL, best, i);
        if (naive && best != i && hp_pair_slower(&pair) < HP_RACE_ALPHA) return true;
        if (!naive) hp_race_drop(&p, r - HP_RACE_FIRST + 1, live);
        for (int k = 0; k < PLANS && r < rounds; k++)
            if (!live[k]) step_s[r * PLANS + k] = NAN;
    }
    return !live[i];
}

static double losing_share(const world *w, int i, int rounds, bool naive) {
    double step_s[ROUNDS * PLANS];
    int lost = 0;
    for (int s = 0; s < RACES; s++) {
        draw(w, (uint64_t)s + 1, step_s);
        lost += loses(step_s, i, rounds, naive);
    }
    return (double)lost / RACES;
}

/* Three standard deviations above a share that is at its limit. */
static double limit(void) {
    return HP_RACE_ALPHA + 3 * sqrt(HP_RACE_ALPHA * (1 - HP_RACE_ALPHA) / RACES);
}

static void the_fastest_stays_as_often_as_promised(void **state) {
    (void)state;
    const world equal = {{0}, {.02, .02, .02, .02}}, first_noisy = {{0}, {.06, .01, .01, .01}},
                other_noisy = {{0}, {.01, .01, .06, .01}},
                close = {{0, .002, .004, .2}, {.02, .02, .02, .05}};
    assert_true(losing_share(&equal, 0, ROUNDS, false) <= HP_RACE_ALPHA);
    assert_true(losing_share(&first_noisy, 0, ROUNDS, false) <= HP_RACE_ALPHA);
    assert_true(losing_share(&other_noisy, 0, ROUNDS, false) <= HP_RACE_ALPHA);
    assert_true(losing_share(&close, 0, ROUNDS, false) <= HP_RACE_ALPHA);
    assert_true(losing_share(&equal, 0, ROUNDS, true) > limit()); /* a test in each round drops too many */
}

static void what_is_clearly_slower_is_dropped(void **state) {
    (void)state;
    const world w = {{0, .02, .1, .2}, {.02, .02, .02, .02}};
    assert_true(losing_share(&w, 3, 4, false) > 0.95);
    assert_true(losing_share(&w, 2, 8, false) > 0.95);
    assert_true(losing_share(&w, 0, ROUNDS, false) < HP_RACE_ALPHA);
}

/* Extra hours of sleep under two drugs (Student 1908): t = 4.0621 with 9 degrees of freedom,
 * two-sided p = 0.002833. */
static void pair_is_students_t(void **state) {
    (void)state;
    static const double a[] = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0, 2},
                        b[] = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
    double step_s[20];
    for (int i = 0; i < 10; i++) step_s[2 * i] = exp(a[i]), step_s[2 * i + 1] = exp(b[i]);
    const hp_pairs p = {2, 10, step_s};
    const hp_pair slower = hp_pairs_of(&p, NULL, 0, 1), faster = hp_pairs_of(&p, NULL, 1, 0);
    assert_int_equal(slower.df, 9);
    assert_near(slower.mean / slower.error, 4.0621, 1e-4);
    assert_near(2 * hp_pair_slower(&slower), 0.002833, 1e-6);
    assert_near(hp_pair_slower(&slower) + hp_pair_slower(&faster), 1, 1e-12);
}

static void what_slows_a_round_slows_all_of_it(void **state) {
    (void)state;
    const world w = {{0, .02, .1, .2}, {.02, .02, .02, .02}};
    double step_s[ROUNDS * PLANS];
    bool all[PLANS] = {true, true, true, true};
    draw(&w, 7, step_s);
    const hp_pairs p = {PLANS, ROUNDS, step_s};
    const hp_pair before = hp_pairs_of(&p, all, 0, 2);
    for (int k = 0; k < ROUNDS * PLANS; k++) {
        const int slower = 1 + k / PLANS; /* the round */
        step_s[k] *= slower;
    }
    const hp_pair after = hp_pairs_of(&p, all, 0, 2);
    assert_near(before.mean, after.mean, 1e-12);
    assert_near(before.error, after.error, 1e-12);
}

static void few_rounds_prove_nothing(void **state) {
    (void)state;
    const double one[] = {1, 2, NAN, 5};
    const hp_pairs p = {4, 1, one};
    const hp_pair pair = hp_pairs_of(&p, NULL, 0, 1);
    bool live[] = {true, true, false, true};
    assert_near(hp_pair_slower(&pair), 1, 0);
    assert_int_equal(hp_race_drop(&p, 1, live), 0);
    assert_int_equal(hp_race_best(&p, live), 0);
    assert_false(hp_race_settled(&p, 1, live));
    const hp_measured m = hp_pairs_measured(&p, 0, 1), never = hp_pairs_measured(&p, 0, 2);
    assert_true(m.rounds == 1 && fabs(m.step_s - 2) < 1e-12 && m.low_s == 0 && isinf(m.high_s));
    assert_true(never.rounds == 0 && isnan(never.step_s));
}

static void halving_keeps_the_faster_half(void **state) {
    (void)state;
    const double two[] = {3, 1, 5, 2, 4, 30, 10, 50, 20, 40};
    const hp_pairs p = {5, 2, two};
    bool live[] = {true, true, true, true, true};
    assert_int_equal(hp_race_halve(&p, live), 2);
    assert_true(live[0] && live[1] && live[3]);
    assert_int_equal(hp_race_halve(&p, live), 1);
    assert_int_equal(hp_race_halve(&p, live), 1);
    assert_true(live[1]);
    assert_int_equal(hp_race_halve(&p, live), 0);
}

/* A plan dropped early, after rounds that happened to be fast, is not reported as fast. */
static void seconds_are_those_of_equal_rounds(void **state) {
    (void)state;
    const double step_s[] = {1, 1.2, 1, 1.2, 3, NAN, 3, NAN};
    const hp_pairs p = {2, 4, step_s};
    const hp_measured best = hp_pairs_measured(&p, 0, 0), other = hp_pairs_measured(&p, 0, 1);
    assert_near(best.step_s, sqrt(3), 1e-12);
    assert_near(other.step_s / best.step_s, 1.2, 1e-12);
    assert_true(best.low_s < best.step_s && best.step_s < best.high_s && other.rounds == 2);
}

static void equal_plans_settle_and_unequal_do_not(void **state) {
    (void)state;
    const world equal = {{0}, {.002, .002, .002, .002}};
    double step_s[ROUNDS * PLANS];
    bool live[PLANS] = {true, true, true, true};
    draw(&equal, 3, step_s);
    const hp_pairs p = {PLANS, ROUNDS, step_s};
    assert_true(hp_race_settled(&p, 1, live));
    const world noisy = {{0}, {.2, .2, .2, .2}};
    draw(&noisy, 3, step_s);
    assert_false(hp_race_settled(&p, 1, live));
}

static void round_is_a_mean_without_the_ends(void **state) {
    (void)state;
    double ten[] = {9, 1e6, 1, 2, 8, 3, 7, 4, 6, -1e6}, one[] = {5};
    assert_near(hp_pairs_round(ten, 10), 5, 1e-12);
    assert_near(hp_pairs_round(one, 1), 5, 0);
    assert_true(isnan(hp_pairs_round(one, 0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_fastest_stays_as_often_as_promised),
                                       cmocka_unit_test(what_is_clearly_slower_is_dropped),
                                       cmocka_unit_test(pair_is_students_t),
                                       cmocka_unit_test(what_slows_a_round_slows_all_of_it),
                                       cmocka_unit_test(few_rounds_prove_nothing),
                                       cmocka_unit_test(halving_keeps_the_faster_half),
                                       cmocka_unit_test(seconds_are_those_of_equal_rounds),
                                       cmocka_unit_test(equal_plans_settle_and_unequal_do_not),
                                       cmocka_unit_test(round_is_a_mean_without_the_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
