/* test_scores.c - scores of predictions of published figures, compared with values computed by hand. */
#include "tests/support/words/words.h"

#include "cli/experiments/experiments.h"

#include <math.h>

static void tau(const double *a, const double *b, int n, double expected) {
    near_to(score_tau(n, a, b), expected, 1e-12);
    near_to(score_tau(n, b, a), expected, 1e-12);
}

static void tau_counts_couples_in_order(void **state) {
    (void)state;
    static const double up[] = {1, 2, 3, 4}, down[] = {9, 7, 5, 3}, one_off[] = {1, 2, 4, 3};
    tau(up, up, 4, 1);
    tau(up, down, 4, -1);
    tau(up, one_off, 4, 4.0 / 6); /* five couples in order, one not */
}

static void ties_are_of_no_order(void **state) {
    (void)state;
    static const double a[] = {1, 1, 2, 3}, b[] = {1, 2, 2, 3}, same[] = {5, 5, 5, 5};
    /* out of six couples, a ties the first two and b the middle two; the other four are in order: 4 / sqrt(5
     * * 5) */
    tau(a, b, 4, 0.8);
    /* a ties one couple, c two; of the other three, two are in order and one is not: 1 / sqrt(5 * 4) */
    static const double c[] = {2, 1, 1, 2};
    tau(a, c, 4, 1 / sqrt(20));
    assert_true(isnan(score_tau(4, a, same)));
    assert_true(isnan(score_tau(1, a, b)));
}

static void ends_belong_to_an_interval(void **state) {
    (void)state;
    static const score_interval x[] = {
        {0.8, 1.2, 0.8}, {0.8, 1.4, 1.4}, {0.9, 1.1, 1.11}, {0, 0, 1}, {0.5, 2.5, 1}};
    const score_coverage c = score_cover(5, x);
    assert_int_equal(c.known, 4);
    assert_int_equal(c.covered, 3);
    near_to(c.half_width, 0.25, 1e-12); /* between 0.2 and 0.3, for 0.1, 0.2, 0.3 and 1 */
    const score_coverage none = score_cover(1, &x[3]);
    assert_int_equal(none.known, 0);
    assert_true(isnan(none.half_width));
}

/* Rates are 1.2 and 0.8 times the published ones; steps differ by the inverse. A ratio has no interval, bytes
 * no time. */
static void a_file_is_scored_by_its_points_of_time(void **state) {
    (void)state;
    hp_error err = {0};
    hp_arena *arena = hp_arena_new();
    experiment_file f = {.name = "made-up", .path = "made-up.txt", .in_table = 1};
    char text[] = "source: s\nwhat: w\nsetup: s\n"
                  "fast | --batch 1 | images_per_s 100 | point, used\n"
                  "slow | --batch 2 | images_per_s 100 | point\n"
                  "step | --batch 3 | step_s 2 | point\n"
                  "gain | fast / slow | images_per_s 2 | point\n"
                  "size | slow | memory_gb 1 | point\n"
                  "sign | fast / slow | images_per_s above | sign\n";
    assert_int_equal(experiment_parse(arena, text, &f, &err), HP_OK);
    experiment_run run[6] = {0};
    for (int i = 0; i < 3; i++) run[i] = (experiment_run){.step_low = 0.9, .step_high = 1.25};
    run[0].figure[EXPERIMENT_images_per_s] = 120; /* truth 1.2: inside */
    run[1].figure[EXPERIMENT_images_per_s] = 80;  /* 0.8: outside */
    run[2].figure[EXPERIMENT_step_s] = 1.8;       /* 2 / 1.8: inside */
    experiment_run *const runs[] = {run, run};
    const experiment_group g = experiment_group_of(1, &f, runs);
    assert_int_equal(g.points, 4);
    assert_int_equal(g.used, 1);
    assert_int_equal(g.hit, 1);
    near_to(g.error, 0.2 + 0.2 + 0.1 + 0.25, 1e-12);
    assert_true(isnan(g.tau)); /* two rates are too few */
    assert_int_equal(g.coverage.known, 3);
    assert_int_equal(g.coverage.covered, 2);
    near_to(g.coverage.half_width, 0.175, 1e-12);
    const experiment_file both[] = {f, f};
    const experiment_group all = experiment_group_of(2, both, runs);
    assert_int_equal(all.points, 8);
    near_to(all.error, 1.5, 1e-12);
    assert_int_equal(all.coverage.covered, 4);
    hp_arena_free(arena);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tau_counts_couples_in_order),
        cmocka_unit_test(ties_are_of_no_order),
        cmocka_unit_test(ends_belong_to_an_interval),
        cmocka_unit_test(a_file_is_scored_by_its_points_of_time),
    };
    return cmocka_run_group_tests(tests, words_open, words_close);
}
