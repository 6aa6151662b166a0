/* test_bench.c - figures of serving: percentiles mean what they say, confidence holds as often as promised,
 * the numbers that MLPerf publishes, and series that survive SQLite. */
#include "base/rng.h"
#include "tests/support/traces/trace_fixture.h"
#include "traces/trace_bench.h"

static double uniform(uint64_t seed, uint64_t i) {
    return ((double)hp_rng_below(seed, 0, i, 1u << 30) + 0.5) / (1u << 30);
}

static void fill_sorted(double *v, int n, uint64_t seed) {
    for (int i = 0; i < n; i++) {
        const double x = uniform(seed, (uint64_t)i);
        int k = i;
        for (; k > 0 && v[k - 1] > x; k--) v[k] = v[k - 1];
        v[k] = x;
    }
}

/* More than the share lies at or below the percentile, at most the share below it. */
static void percentile_parts_the_sample(void **state) {
    (void)state;
    static const int shares[] = {0, 500, 900, 990, 999};
    double v[211];
    for (int n = 1; n <= 211; n += 7) {
        fill_sorted(v, n, (uint64_t)n);
        for (int s = 0; s < 5; s++) {
            const double p = hp_serving_percentile(v, n, shares[s]);
            int below = 0, within = 0;
            for (int i = 0; i < n; i++) {
                below += v[i] < p;
                within += v[i] <= p;
            }
            assert_true(within * 1000 > shares[s] * n);
            assert_true(below * 1000 <= shares[s] * n);
        }
    }
}

/* LoadGen takes elements 90 and 99, counted from 0, of 100. */
static void percentiles_of_one_to_a_hundred(void **state) {
    (void)state;
    double v[100];
    for (int i = 0; i < 100; i++) v[i] = i + 1;
    assert_true(hp_serving_percentile(v, 100, 500) == 51);
    assert_true(hp_serving_percentile(v, 100, 900) == 91);
    assert_true(hp_serving_percentile(v, 100, 990) == 100);
}

/* The rules ask for 64 queries for the 90th percentile and 662 for the 99th. */
static void fewest_queries_are_the_published_ones(void **state) {
    (void)state;
    double v[64];
    fill_sorted(v, 64, 3);
    assert_int_equal(hp_serving_min_queries(900), 64);
    assert_int_equal(hp_serving_min_queries(990), 662);
    assert_true(isnan(hp_serving_early_stop(v, 63, 900)));
    assert_true(hp_serving_early_stop(v, 64, 900) == v[63]);
}

/* The bound lies below the true percentile in at most one of a hundred experiments. */
static void early_stopping_holds_with_99_percent_confidence(void **state) {
    (void)state;
    enum { TRIALS = 3000 };
    double v[300];
    for (int n = 64; n <= 300; n += 118) {
        int wrong = 0;
        double sum = 0;
        for (int t = 0; t < TRIALS; t++) {
            fill_sorted(v, n, (uint64_t)(t * 1000 + n));
            const double bound = hp_serving_early_stop(v, n, 900);
            wrong += bound < 0.9;
            sum += bound;
        }
        assert_true(wrong <= TRIALS / 100.0 + 3 * sqrt(TRIALS / 100.0));
        assert_true(sum / TRIALS > 0.9 && sum / TRIALS < 1);
    }
}

static void more_queries_bring_the_bound_nearer(void **state) {
    (void)state;
    enum { N = 200000 };
    double *v = malloc(N * sizeof *v);
    for (int i = 0; i < N; i++) v[i] = (i + 0.5) / N;
    const double bound = hp_serving_early_stop(v, N, 900);
    const double sigma = sqrt(0.9 * 0.1 / N); /* the share above is nearly normal: 2.326 sigma is 99% */
    assert_true(fabs(bound - (0.9 + 2.326 * sigma)) < 0.1 * sigma);
    free(v);
}

static void throughput_is_images_over_time(void **state) {
    (void)state;
    double v[] = {0.3, 0.1, 0.2, 0.4};
    const hp_serving f = hp_serving_of(v, 4, 8);
    assert_int_equal(f.queries, 4);
    assert_int_equal(f.images, 32);
    fixture_near(f.busy_s, 1);
    fixture_near(f.images_per_s, 32);
    fixture_near(f.mean_s, 0.25);
    assert_true(f.p50_s == 0.3 && f.p90_s == 0.4 && f.p99_s == 0.4);
}

static void one_disturbed_round_moves_no_median(void **state) {
    (void)state;
    hp_serving round[3] = {{10, 10, 1, 10, 0.1, 0.1, 0.1, 0.1},
                           {10, 10, 100, 0.1, 10, 10, 10, 10}, /* disturbed */
                           {10, 10, 1.1, 9, 0.11, 0.11, 0.12, 0.13}};
    const hp_serving m = hp_serving_median(round, 3);
    assert_true(m.images_per_s == 9 && m.p50_s == 0.11 && m.p90_s == 0.12 && m.p99_s == 0.13);
    assert_int_equal(m.queries, 30);
    fixture_near(m.busy_s, 102.1);
    assert_true(hp_serving_median(round, 2).p50_s == (0.1 + 10) / 2);
}

static void rules_are_met_by_time_and_number(void **state) {
    (void)state;
    char why[100];
    const hp_serving enough = {.queries = 662, .images = 24576, .busy_s = 600};
    for (int c = 0; c < HP_SCENARIOS; c++) assert_true(hp_serving_complete(c, &enough, why, sizeof why));
    assert_string_equal(why, "");
    hp_serving less = enough;
    less.queries = 661;
    assert_true(hp_serving_complete(HP_SINGLE_STREAM, &less, why, sizeof why));
    assert_false(hp_serving_complete(HP_MULTI_STREAM, &less, why, sizeof why));
    assert_string_equal(why, "661 of 662 queries");
    less.images = 24575;
    less.busy_s = 6;
    assert_false(hp_serving_complete(HP_OFFLINE, &less, why, sizeof why));
    assert_non_null(strstr(why, "6 of 600 s"));
    assert_non_null(strstr(why, "of 24576 images"));
}

static void scenarios_go_by_name(void **state) {
    (void)state;
    for (int c = 0; c < HP_SCENARIOS; c++) assert_int_equal(hp_scenario_find(hp_scenario_infos[c].name), c);
    assert_int_equal(hp_scenario_find("server"), HP_SCENARIOS);
    assert_int_equal(hp_scenario_infos[HP_MULTI_STREAM].query_images, 8);
}

/* --- SQLite --- */

static char path[200];

static hp_bench_query queries[5] = {{0, 300}, {0, 100}, {1, 200}, {1, 500}, {1, 400}};
static const hp_bench_series one = {.net = "cnn",
                                    .prec = "int8",
                                    .strategy = "dp=2",
                                    .machine = "local",
                                    .device = "cpu",
                                    .version = "9",
                                    .started = "2024",
                                    .image_h = 32,
                                    .image_w = 48,
                                    .threads = 3,
                                    .ranks = 2,
                                    .scenario = HP_MULTI_STREAM,
                                    .batch = 8,
                                    .predicted_s = 0.5,
                                    .planned_bytes = 1000,
                                    .peak_bytes = 900,
                                    .rss_bytes = 5000,
                                    .n_query = 5,
                                    .query = queries};

static void write_one(void) {
    hp_error err = {0};
    hp_db db;
    fixture_ok(hp_db_create(path, &db, &err), &err);
    fixture_ok(hp_bench_write(&db, &one, &err), &err);
    fixture_ok(hp_bench_write(&db, &one, &err), &err);
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
}

static hp_status read_all(hp_arena *arena, hp_bench_series **s, int *n, hp_error *err) {
    hp_db db;
    fixture_ok(hp_db_open(path, &db, err), err);
    const hp_status status = hp_bench_read(arena, &db, s, n, err);
    hp_db_close(&db);
    return status;
}

static void series_come_back_as_written(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err = {0};
    hp_bench_series *s = NULL;
    int n = 0;
    write_one();
    fixture_ok(read_all(arena, &s, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_string_equal(s[1].net, "cnn");
    assert_string_equal(s[1].prec, "int8");
    assert_string_equal(s[1].strategy, "dp=2");
    assert_int_equal(s[1].image_w, 48);
    assert_int_equal(s[1].scenario, HP_MULTI_STREAM);
    assert_int_equal(s[1].batch, 8);
    assert_int_equal(s[1].peak_bytes, 900);
    assert_int_equal(s[1].rss_bytes, 5000);
    assert_int_equal(s[1].n_query, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(s[1].query[i].round, queries[i].round);
        assert_int_equal(s[1].query[i].ns, queries[i].ns);
    }
    hp_arena_free(arena);
}

/* Rounds {300, 100} and {200, 500, 400} ns. */
static void medians_are_over_rounds_and_pools_over_queries(void **state) {
    (void)state;
    const hp_serving m = hp_bench_median(&one), all = hp_bench_pooled(&one);
    fixture_near(m.p50_s, (300e-9 + 400e-9) / 2);
    fixture_near(m.images_per_s, (16 / 400e-9 + 24 / 1100e-9) / 2);
    fixture_near(all.p50_s, 300e-9);
    fixture_near(all.images_per_s, 40 / 1500e-9);
    assert_true(isnan(hp_bench_tail(&one)));
}

static void damaged_series_are_rejected(void **state) {
    (void)state;
    static const char *const damage[] = {"UPDATE bench SET scenario = 'server'",
                                         "UPDATE bench SET image_h = 0",
                                         "UPDATE bench SET batch = -1",
                                         "UPDATE bench SET batch = 9223372036854775807",
                                         "UPDATE bench SET ranks = 4294967297",
                                         "UPDATE bench SET rss_bytes = -5",
                                         "UPDATE latency SET ns = 0",
                                         "UPDATE latency SET ns = 9223372036854775807",
                                         "UPDATE latency SET round = -1",
                                         "DELETE FROM latency WHERE bench = 2",
                                         "UPDATE bench SET peak_bytes = 1152921504606846977"};
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        hp_arena *arena = hp_arena_new();
        hp_error err = {0};
        hp_bench_series *s = NULL;
        hp_db db;
        int n = 0;
        write_one();
        fixture_ok(hp_db_open_rw(path, &db, &err), &err);
        fixture_ok(hp_db_exec(&db, &err, damage[i], ""), &err);
        fixture_ok(hp_db_commit(&db, &err), &err);
        hp_db_close(&db);
        if (read_all(arena, &s, &n, &err) != HP_EDATA) fail_msg("accepted: %s", damage[i]);
        assert_non_null(strstr(err.text, path));
        hp_arena_free(arena);
    }
}

static int tidy(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    fixture_path(path, sizeof path, "bench.db");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentile_parts_the_sample),
        cmocka_unit_test(percentiles_of_one_to_a_hundred),
        cmocka_unit_test(fewest_queries_are_the_published_ones),
        cmocka_unit_test(early_stopping_holds_with_99_percent_confidence),
        cmocka_unit_test(more_queries_bring_the_bound_nearer),
        cmocka_unit_test(throughput_is_images_over_time),
        cmocka_unit_test(one_disturbed_round_moves_no_median),
        cmocka_unit_test(rules_are_met_by_time_and_number),
        cmocka_unit_test(scenarios_go_by_name),
        cmocka_unit_test(series_come_back_as_written),
        cmocka_unit_test(medians_are_over_rounds_and_pools_over_queries),
        cmocka_unit_test(damaged_series_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, tidy);
}
