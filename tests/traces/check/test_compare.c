/* test_compare.c - rank tests against published tables and full enumeration; comparisons of runs
 * with known results. */
#include "base/rng.h"
#include "tests/support/traces/trace_fixture.h"
#include "tests/support/plan/law_cases.h"
#include "traces/check/compare.h"
#include "traces/check/ranktest.h"

static char path_a[256], path_b[256];

/* --- rank tests --- */

/* R's documentation of wilcox.test (Hollander and Wolfe 1973, p. 29 f.): depression scores, two-sided p =
 * 0.03906. */
static void wilcoxon_of_hollander_and_wolfe(void **state) {
    (void)state;
    const double first[] = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
    const double second[] = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
    double difference[9];
    for (int i = 0; i < 9; i++) difference[i] = second[i] - first[i];
    assert_true(fabs(hp_wilcoxon(difference, 9, 0) - 0.0390625) < 1e-12);
}

/* Hollander and Wolfe 1973, p. 69 f.: permeability of membranes, W = 35, one-sided p = 0.1272, so two-sided
 * 0.2544. */
static void mann_whitney_of_hollander_and_wolfe(void **state) {
    (void)state;
    const double x[] = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46},
                 y[] = {1.15, 0.88, 0.90, 0.74, 1.21};
    assert_true(fabs(hp_mann_whitney(x, 10, y, 5) - 0.2544) < 1e-4);
}

/* Two samples that do not overlap have the smallest possible p: 2 / C(n + m, n). */
static void separated_samples_have_the_smallest_p(void **state) {
    (void)state;
    double v[20];
    for (int i = 0; i < 20; i++) v[i] = i * 1.5;
    for (int n = 1; n < 10; n++) {
        double ways = 1;
        for (int i = 1; i <= n; i++) ways = ways * (n + i) / i;
        assert_true(fabs(hp_mann_whitney(v, n, v + n, n) - 2 / ways) < 1e-12);
        assert_true(fabs(hp_wilcoxon(v, n, -1) - fmin(1, 2 * pow(0.5, n))) < 1e-12);
    }
}

static double mid_rank(const double *v, int n, double x) {
    double less = 0, equal = 0;
    for (int i = 0; i < n; i++) {
        less += v[i] < x;
        equal += v[i] == x;
    }
    return less + (equal + 1) / 2;
}

/* Enumerates all C(n, nx) choices of x by bit masks. */
static double enumerate_two(const double *v, int n, int nx) {
    double observed = 0, mean = nx * (n + 1) / 2.0, far = 0, all = 0;
    for (int i = 0; i < nx; i++) observed += mid_rank(v, n, v[i]);
    for (unsigned mask = 0; mask < 1u << n; mask++) {
        if (__builtin_popcount(mask) != nx) continue;
        double sum = 0;
        for (int i = 0; i < n; i++)
            if (mask >> i & 1) sum += mid_rank(v, n, v[i]);
        all++;
        far += fabs(sum - mean) >= fabs(observed - mean) - 1e-9;
    }
    return far / all;
}

static double enumerate_signed(const double *x, int n) {
    double size[16] = {0}, observed = 0, mean = 0, far = 0;
    int m = 0;
    for (int i = 0; i < n; i++)
        if (x[i] != 0) size[m++] = fabs(x[i]);
    for (int i = 0, k = 0; i < n; i++) {
        if (x[i] == 0) continue;
        const double rank = mid_rank(size, m, size[k++]);
        mean += rank / 2;
        if (x[i] > 0) observed += rank;
    }
    for (unsigned mask = 0; mask < 1u << m; mask++) {
        double sum = 0;
        for (int i = 0; i < m; i++)
            if (mask >> i & 1) sum += mid_rank(size, m, size[i]);
        far += fabs(sum - mean) >= fabs(observed - mean) - 1e-9;
    }
    return m ? far / (double)(1u << m) : 1;
}

/* Small integers: many ties and zeros. */
static void exact_distributions_equal_enumeration(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < law_cases(150); seed++) {
        double v[11] = {0};
        const int n = 2 + (int)hp_rng_below(seed, 1, 0, 9),
                  nx = 1 + (int)hp_rng_below(seed, 2, 0, (uint64_t)n - 1);
        for (int i = 0; i < n; i++)
            v[i] = (double)hp_rng_below(seed, 3, (uint64_t)i, seed % 2 ? 6 : 1000) - (seed % 2 ? 2 : 300);
        assert_true(fabs(hp_mann_whitney(v, nx, v + nx, n - nx) - enumerate_two(v, n, nx)) < 1e-9);
        assert_true(fabs(hp_wilcoxon(v, n, 0) - enumerate_signed(v, n)) < 1e-9);
    }
}

/* Just above the limit of the exact distribution, the normal approximation must be close to it. */
static void approximation_continues_the_exact_distribution(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < law_cases(40); seed++) {
        double x[26], y[26], z[52];
        for (int i = 0; i < 26; i++) {
            x[i] = hp_rng_normal(seed, 0, (uint64_t)i);
            y[i] = hp_rng_normal(seed, 1, (uint64_t)i) + 0.4;
            z[i] = x[i];
            z[26 + i] = y[i] - 0.2;
        }
        const double exact = hp_mann_whitney(x, 25, y, 25), near = hp_mann_whitney(x, 26, y, 25);
        assert_true(fabs(exact - near) <
                    0.25 * sqrt(exact) + 0.01); /* one value more, with the approximation */
        assert_true(fabs(hp_wilcoxon(z, 50, 0) - hp_wilcoxon(z, 51, 0)) <
                    0.25 * sqrt(hp_wilcoxon(z, 50, 0)) + 0.01);
    }
    const double same[60] = {0};
    assert_true(hp_mann_whitney(same, 30, same + 30, 30) == 1);
    assert_true(hp_wilcoxon(same, 60, 0) == 1);
    assert_true(hp_wilcoxon(NULL, 0, 0) == 1);
}

/* Under the null hypothesis, p is below 0.05 in at most 5 % of the draws; that happens, so the
 * test is not empty. */
static void p_values_keep_their_level(void **state) {
    (void)state;
    int low_two = 0, low_signed = 0;
    const int draws = 2000;
    for (int k = 0; k < draws; k++) {
        double v[24];
        for (int i = 0; i < 24; i++) v[i] = hp_rng_normal(77, (uint64_t)k, (uint64_t)i);
        low_two += hp_mann_whitney(v, 12, v + 12, 12) < 0.05;
        low_signed += hp_wilcoxon(v, 24, 0) < 0.05;
    }
    /* 5 % of 2000 is 100, standard deviation 9.7: plus four of them */
    assert_true(low_two <= 139 && low_two > 40);
    assert_true(low_signed <= 139 && low_signed > 40);
}

/* --- comparisons --- */

enum { UNIT_NS = 1000000 };

/* Measured: task t of rank r takes (t + 1) ms, twice that if r >= 2; +- 1 % noise, the first iteration 3x. */
static int64_t measured(const void *self, int rank, int task, int iter) {
    (void)self;
    const double noise = 0.01 * (hp_rng_uniform(5, (uint64_t)(rank * 100 + task), (uint64_t)iter) - 0.5);
    const double d = (double)((task + 1) * (rank >= 2 ? 2 : 1) * UNIT_NS) * (1 + noise) * (iter == 0 ? 3 : 1);
    return (int64_t)d;
}

/* Predicted: 1.5 ms times (task + 1), the exact mean over the ranks of a role (1 and 2 ms on ranks 0 and 2).
 * Only the optimizer (task 3) is predicted 20 % too long. */
static int64_t predicted(const void *self, int rank, int task, int iter) {
    (void)self, (void)rank, (void)iter;
    return (int64_t)((task + 1) * 1.5 * UNIT_NS * (task == 3 ? 1.2 : 1));
}

static void write_pair(const char *path, bool sim, bool exec) {
    hp_error err = {0};
    hp_db db;
    fixture_ok(hp_db_create(path, &db, &err), &err);
    const fixture_run s = {.kind = "sim", .ranks = 4, .span_ranks = 2, .iters = 1, .duration = predicted};
    const fixture_run e = {.kind = "exec", .ranks = 4, .iters = 21, .duration = measured};
    if (sim) fixture_add(&db, &s);
    if (exec) fixture_add(&db, &e);
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
}

static const hp_compare_row *find_row(const hp_compare_row *r, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(r[i].name, name) == 0) return &r[i];
    fail_msg("no row %s", name);
    return NULL;
}

static void close_to(double have, double want, double tolerance) {
    if (!(fabs(have - want) <= tolerance * fabs(want)))
        fail_msg("%.9g is not within %g of %.9g", have, tolerance, want);
}

static void folded_prediction_compares_with_all_ranks(void **state) {
    (void)state;
    hp_error err = {0};
    hp_trace a, b;
    hp_comparison c;
    hp_arena *arena = hp_arena_new();
    write_pair(path_a, true, true);
    fixture_ok(hp_compare_load(arena, path_a, NULL, &a, &b, &err), &err);
    fixture_ok(hp_compare(arena, &a, &b, &c, &err), &err);
    assert_string_equal(a.kind, "sim");
    assert_int_equal(c.warmup[0], 0);
    assert_int_equal(c.warmup[1], 1);
    assert_int_equal(c.n_iter[1], 20);
    /* mean over ranks of (task + 1) ms and twice that: 1.5 (task + 1) ms */
    const hp_compare_row *forward = find_row(c.phase, c.n_phase, "forward");
    close_to(forward->predicted_s, 0.0030, 1e-9);
    close_to(forward->measured_s, 0.0030, 0.003);
    close_to(1 + forward->error, 1, 0.003);
    const hp_compare_row *transfer = find_row(c.phase, c.n_phase, "transfer");
    close_to(transfer->measured_s, 0.0165, 0.003);
    const hp_compare_row *optimizer = find_row(c.phase, c.n_phase, "optimizer");
    close_to(optimizer->error, 0.2, 0.03);
    assert_true(optimizer->p < 0.001);
    assert_true(optimizer->p >= 2 * pow(0.5, 20));
    /* measured: ranks 2 and 3 compute for 20 ms and determine the step; ranks 0 and 1 compute for 10
     * ms and wait for 10 */
    close_to(c.step.measured_s, 0.020, 0.003);
    close_to(find_row(c.phase, c.n_phase, "waiting")->measured_s, 0.005, 0.02);
    close_to(c.step.predicted_s, (1 + 2 + 3 + 4 * 1.2) * 0.0015, 1e-9);
    assert_true(find_row(c.phase, c.n_phase, "waiting")->predicted_s == 0);
    const hp_compare_row *kind = find_row(c.kind, c.n_kind, "fwd.conv");
    close_to(kind->measured_s, forward->measured_s, 1e-12);
    assert_int_equal(c.n_task, FIXTURE_ROLES * FIXTURE_TASKS);
    for (int i = 0; i < c.n_task; i++) close_to(c.task[i].measured_s, 0.0015 * (c.task[i].task + 1), 0.003);
    hp_arena_free(arena);
}

/* Compute phases and waiting add up to the step on every side. */
static void phases_and_waiting_add_up_to_the_step(void **state) {
    (void)state;
    hp_error err = {0};
    hp_trace a, b;
    hp_comparison c;
    hp_arena *arena = hp_arena_new();
    write_pair(path_a, true, true);
    fixture_ok(hp_compare_load(arena, path_a, NULL, &a, &b, &err), &err);
    fixture_ok(hp_compare(arena, &a, &b, &c, &err), &err);
    static const char *const parts[] = {"load", "forward", "backward", "optimizer", "waiting"};
    double p = 0, m = 0;
    for (int i = 0; i < 5; i++) {
        p += find_row(c.phase, c.n_phase, parts[i])->predicted_s;
        m += find_row(c.phase, c.n_phase, parts[i])->measured_s;
    }
    close_to(p, c.step.predicted_s, 1e-9);
    close_to(m, c.step.measured_s, 0.01); /* medians do not add up exactly */
    hp_arena_free(arena);
}

static void two_files_compare_in_either_order(void **state) {
    (void)state;
    hp_error err = {0};
    hp_trace a, b;
    hp_comparison c, d;
    hp_arena *arena = hp_arena_new();
    write_pair(path_a, true, false);
    write_pair(path_b, false, true);
    fixture_ok(hp_compare_load(arena, path_a, path_b, &a, &b, &err), &err);
    fixture_ok(hp_compare(arena, &a, &b, &c, &err), &err);
    fixture_ok(hp_compare_load(arena, path_b, path_a, &a, &b, &err), &err);
    fixture_ok(hp_compare(arena, &a, &b, &d, &err), &err);
    assert_true(c.step.predicted_s == d.step.predicted_s && c.step.measured_s == d.step.measured_s);
    fixture_ok(hp_compare_load(arena, path_b, path_b, &a, &b, &err), &err);
    fixture_ok(hp_compare(arena, &a, &b, &c, &err), &err);
    assert_true(c.step.change == 0 && c.step.p == 1);
    assert_int_equal(hp_compare_load(arena, path_a, NULL, &a, &b, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "no executed run"));
    assert_int_equal(hp_compare_load(arena, path_b, NULL, &a, &b, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "no prediction"));
    hp_arena_free(arena);
}

static int set_up(void **state) {
    (void)state;
    fixture_path(path_a, sizeof path_a, "compare-a.db");
    fixture_path(path_b, sizeof path_b, "compare-b.db");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    unlink(path_a);
    unlink(path_b);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wilcoxon_of_hollander_and_wolfe),
        cmocka_unit_test(mann_whitney_of_hollander_and_wolfe),
        cmocka_unit_test(separated_samples_have_the_smallest_p),
        cmocka_unit_test(exact_distributions_equal_enumeration),
        cmocka_unit_test(approximation_continues_the_exact_distribution),
        cmocka_unit_test(p_values_keep_their_level),
        cmocka_unit_test(folded_prediction_compares_with_all_ranks),
        cmocka_unit_test(phases_and_waiting_add_up_to_the_step),
        cmocka_unit_test(two_files_compare_in_either_order),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
