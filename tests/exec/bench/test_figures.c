/* test_figures.c - medians, percentiles and means of samples whose figures are known. */
#include "exec/bench/bench_figures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void near(double got, double want) {
    if (got < want - 1e-12 || got > want + 1e-12) fail_msg("%g, expected %g", got, want);
}

/* 1 to 200 in a scrambled order (37 and 200 have no common divisor), on two ranks. */
static void percentiles_of_one_to_two_hundred(void **state) {
    (void)state;
    double sample[200];
    for (int i = 0; i < 200; i++) sample[i] = 1 + i * 37 % 200;
    const hp_bench_figures f = hp_bench_figures_of(sample, 2, 100, false);
    near(f.min_s, 1);
    near(f.median_s, 100.5);
    near(f.p99_s, 198); /* 198 of 200 are 99% */
    near(f.max_s, 200);
}

/* Ranks leave early and late: the time of an iteration is their mean. */
static void the_time_is_the_median_of_means_over_ranks(void **state) {
    (void)state;
    const double sample[] = {1, 10, 2, 100, /* rank 0 */
                             3, 20, 2, 700 /* rank 1 */};
    near(hp_bench_figures_of(sample, 2, 4, false).time_s, (2. + 15) / 2); /* means 2, 15, 2, 400 */
    near(hp_bench_time(sample, 2, 4, 0, 1, false), 2);
    near(hp_bench_time(sample, 2, 4, 1, 3, false), 15);
}

/* Iterations back to back end with the last rank, whichever that is. */
static void the_time_is_the_median_of_last_ranks(void **state) {
    (void)state;
    const double sample[] = {1, 30, 2, 100, /* rank 0 */
                             3, 20, 4, 700 /* rank 1 */};
    near(hp_bench_figures_of(sample, 2, 4, true).time_s, (4. + 30) / 2); /* maxima 3, 30, 4, 700 */
    near(hp_bench_time(sample, 2, 4, 0, 1, true), 3);
    near(hp_bench_time(sample, 2, 4, 1, 3, true), 30);
}

static void a_single_sample_is_all_of_them(void **state) {
    (void)state;
    const double sample[] = {4};
    const hp_bench_figures f = hp_bench_figures_of(sample, 1, 1, false);
    near(f.time_s, 4);
    near(f.min_s, 4);
    near(f.median_s, 4);
    near(f.p99_s, 4);
    near(f.max_s, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_of_one_to_two_hundred),
        cmocka_unit_test(the_time_is_the_median_of_means_over_ranks),
        cmocka_unit_test(the_time_is_the_median_of_last_ranks),
        cmocka_unit_test(a_single_sample_is_all_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
