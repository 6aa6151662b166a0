/* test_table.c - cost tables: strict text, exact interpolation, the order of fallbacks, fits; a table
 * calibrated from a run predicts that run. */
#include "costmodels/calibrate.h"
#include "costmodels/cost_fit.h"
#include "costmodels/cost_line.h"
#include "costmodels/models.h"
#include "costmodels/cost_speed.h"
#include "base/rng.h"
#include "tests/support/plan/data_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/support/sim/made_up_machine.h"
#include "plan/program/work.h"

static void lines_are_exact_at_their_points_and_monotone_between(void **state) {
    (void)state;
    const double x[] = {10, 100, 1000}, y[] = {5, 14, 50};
    for (int i = 0; i < 3; i++) assert_true(hp_line_at(x, y, 3, x[i]) == y[i]); // NOLINT: exact
    assert_true(hp_line_at(x, y, 3, 55) == 9.5);                                // NOLINT: half-way
    assert_true(near(hp_line_at(x, y, 3, 2000), 90, 1e-12)); /* continues the slope of the last two points */
    assert_true(near(hp_line_at(x, y, 3, 0), 4, 1e-12));     /* the intercept stays */
    for (int a = 1; a < 3000; a += 7) assert_true(hp_line_at(x, y, 3, a) <= hp_line_at(x, y, 3, a + 7));
    const double steep[] = {1, 20};
    assert_true(hp_line_at(x, steep, 2, 5) == 0.5); // NOLINT: would be negative, so through the origin
    assert_true(hp_line_at(x, y, 1, 20) == 10);     // NOLINT: a single point too
    assert_true(near(hp_octaves_outside(10, 1000, 4000), 2, 1e-12) &&
                near(hp_octaves_outside(10, 1000, 5), 1, 1e-12) &&
                near(hp_octaves_outside(10, 1000, 1000), 0, 0));
    const double near[] = {100, 1000, 1001}, noise[] = {10, 100, 120}; /* two samples of nearly one size */
    assert_true(hp_line_at(near, noise, 3, 2001) < 300 && hp_line_at(near, noise, 3, 2001) > 200);
}

/* --- text --- */

static const char good[] =
    "hplan-cost 2\nmachine local\ndate 2026-01-02\n"
    "# a comment\n"
    "collective shm allreduce own.ring r2 n2 | measured 0.05 9 | 8:1e-06 1024:2e-06\n"
    "compute cpu fwd.conv k3x3 s1 d1 g1 i8 o8 f32 | measured 0.1 30 hplan calibrate | 100:0.0001 200:0.0003\n"
    "fit cpu fwd.conv f32 | measured 0.2 4 | launch:1e-06 flops:1e+10 bytes:0 bytes_least:1 bytes_most:1000 "
    "intensity_least:0 intensity_most:1e+12 fastest:1e+10\n"
    "p2p shm | paper 0.1 1 a paper | 0:1e-06 1000000:0.0002\n"
    "share cpu fwd.conv f32 | measured 0 2 | share:0.6\n";

static hp_cost_table *parse(hp_arena *arena, const char *text) {
    hp_cost_table *t = NULL;
    hp_error err = {HP_OK, ""};
    if (hp_rows_parse(arena, text, "test", &t, &err) != HP_OK) fail_msg("%s", err.text);
    return t;
}

/* A slowdown is a positive number, whatever times a table says. */
static void yardsticks_without_a_time_say_nothing_of_the_speed(void **state) {
    (void)state;
    static const char *const times[] = {"quiet:0.0001 mean:0", "quiet:0 mean:0.0001", "quiet:1e-30 mean:1e30",
                                        "quiet:1e30 mean:1e-30"};
    hp_arena *arena = hp_arena_new();
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        char *text = hp_arena_printf(arena,
                                     "hplan-cost 2\nmachine local\ndate 2026-01-02\nyardstick cpu arith r1 | "
                                     "measured 0 9 | %s spread:0\n",
                                     times[i]);
        const hp_speed usual = hp_speed_usual(parse(arena, text));
        for (int y = 0; y < HP_SPEED_CLASSES; y++) assert_true(near(usual.slowdown[y], 1, 0));
    }
    hp_arena_free(arena);
}

static void text_survives_a_round_trip(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err;
    const char *path = scratch_path("round.cost");
    size_t n;
    assert_int_equal(hp_rows_write(parse(arena, good), path, &err), HP_OK);
    unsigned char *once = scratch_read(path, &n);
    char *text = hp_arena_alloc(arena, n + 1);
    memcpy(text, once, n);
    free(once);
    assert_int_equal(hp_rows_write(parse(arena, text), path, &err), HP_OK);
    unsigned char *twice = scratch_read(path, &n);
    assert_memory_equal(text, twice, n);
    assert_null(strstr(text, "comment"));
    assert_non_null(strstr(text, "compute cpu fwd.conv k3x3 s1 d1 g1 i8 o8 f32 | measured 0.1 30 hplan "
                                 "calibrate | 100:0.0001 200:0.0003\n"));
    free(twice);
    assert_int_equal(hp_rows_write(parse(arena, good), "/nonexistent/x.cost", &err), HP_ECREATE);
    hp_arena_free(arena);
}

static void odd_lines_are_errors_with_their_number(void **state) {
    (void)state;
    static const char without_power[] =
        "attend * causal f32 | guess 0 0 | rows:128 penalty:1 fill:0 softmax:0 moved:1 "
        "flops:1 bytes:1 launch:0 power:0 cache:0 cached:1";
    static const char *const bad[] = {
        "frobnicate cpu x | measured 0.1 1 | 1:2",
        "compute cpu x | measured 0.1 1 | 1:nan",
        "compute cpu x | measured 0.1 1 | 1:-2",
        "compute cpu x | measured 0.1 1 | 1:1e300", /* a few such values make an infinite time */
        "link * | guess 0.3 0 | latency:0 bandwidth:1e-300 rate:0",
        "compute cpu x | measured 0.1 1 | 2:1 1:2",
        "compute cpu x | measured 0.1 1 | 1:1 1:2",
        "compute cpu x | measured 0.1 1 | 1:1x",
        "compute cpu x | measured 0.1 1 |",
        "compute cpu x | heard 0.1 1 | 1:1",
        "compute cpu x | measured 1 | 1:1",
        "compute cpu x measured 0.1 1 1:1",
        "fit cpu x | measured 0.1 1 | launch:1 flops:2",
        "fit cpu x | measured 0.1 1 | flops:1 launch:2 bytes:3",
        "share cpu x | measured 0.1 1 | share:1 share:2",
        "tile * f32 | guess 0 0 | rows:128 cols:128 least:0 penalty:0.9 fill:9",
        "tile * f32 | guess 0 0 | rows:128 cols:0 least:32 penalty:0.9 fill:9",
        "tile * f32 | guess 0 0 | rows:128 cols:128 least:32 penalty:0 fill:9",
        "tile * f32 | guess 0 0 | rows:128 cols:128 least:32 penalty:0.9 fill:9 depth:1",
        without_power,
        "units h100 | guess 0 0 | count:0",
        "collective shm r2 n2 | measured 0.1 1 | 1:2",
        "collective shm allreduce own.ring r2 | measured 0.1 1 | 1:2",
        "collective shm allreduce own.rings r2 n2 | measured 0.1 1 | 1:2",
        "collective shm allreduce own. r2 n2 | measured 0.1 1 | 1:2",
        "collective shm allreduce gloo r2 n2 | measured 0.1 1 | 1:2",
        "collective shm allreduces own.ring r2 n2 | measured 0.1 1 | 1:2",
        "collective shm allreduce own.ring r02 n2 | measured 0.1 1 | 1:2",
        "collective shm allreduce own.ring r0 n2 | measured 0.1 1 | 1:2",
    };
    hp_arena *arena = hp_arena_new();
    hp_cost_table *t;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hp_error err = {HP_OK, ""};
        const char *text = hp_arena_printf(arena, "hplan-cost 2\nmachine m\ndate d\n%s\n", bad[i]);
        if (hp_rows_parse(arena, text, "f.cost", &t, &err) != HP_EDATA) fail_msg("accepted: %s", bad[i]);
        assert_non_null(strstr(err.text, "f.cost line 4"));
    }
    hp_error err;
    assert_int_equal(hp_rows_parse(arena, "hplan-cost 1\nmachine m\ndate d\n", "f", &t, &err), HP_EDATA);
    assert_int_equal(hp_rows_parse(arena, "", "f", &t, &err), HP_EDATA);
    const char *unsorted =
        "hplan-cost 2\nmachine m\ndate d\np2p b | guess 0 0 | 1:1\np2p a | guess 0 0 | 1:1\n";
    assert_int_equal(hp_rows_parse(arena, unsorted, "f", &t, &err), HP_EDATA);
    hp_arena_free(arena);
}

/* Older versions' all-reduce rows did not name their back end. */
static void rows_of_older_versions_are_left_out_and_said(void **state) {
    (void)state;
    static const char old[] = "hplan-cost 2\nmachine local\ndate 2026-01-02\n"
                              "allreduce shm r2 n2 | measured 0.05 9 | 8:1e-06 1024:2e-06\n"
                              "p2p shm | paper 0.1 1 a paper | 0:1e-06 1000000:0.0002\n";
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    hp_error err;
    hp_cost_table *t;
    const char *path = scratch_write("old.cost", old, sizeof old - 1);
    assert_int_equal(hp_cost_load(arena, path, &m, &t, &err), HP_OK);
    assert_int_equal(t->n, 1);
    assert_non_null(strstr(hp_cost_origin(t), "calibrate --comm"));
    path = scratch_write("new.cost", good, sizeof good - 1);
    assert_int_equal(hp_cost_load(arena, path, &m, &t, &err), HP_OK);
    assert_null(strstr(hp_cost_origin(t), "calibrate"));
    hp_arena_free(arena);
}

/* Cut anywhere, or with a byte flipped anywhere: an error or a table, never a crash. */
static void damaged_text_is_survived(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    for (uint64_t i = 0; i < 3000; i++) {
        char *text = hp_arena_strdup(arena, good);
        hp_cost_table *t;
        text[hp_rng_below(1, 1, i, sizeof good - 1)] = (char)(1 + hp_rng_below(1, 2, i, 255));
        if (i % 3 == 0) text[hp_rng_below(1, 3, i, sizeof good - 1)] = 0;
        (void)hp_rows_parse(arena, text, "f", &t, NULL);
    }
    hp_arena_free(arena);
}

/* --- models --- */

static hp_work work(const char *key, double size, double flops, double bytes) {
    hp_work w = {.size = size, .flops = flops, .bytes = bytes};
    snprintf(w.key, sizeof w.key, "%s", key);
    return w;
}

static void measured_rows_come_before_fits_before_the_roofline(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    hp_error err;
    hp_cost_table *t;
    const char *path = scratch_write("chain.cost", good, sizeof good - 1);
    assert_int_equal(hp_cost_load(arena, path, &m, &t, &err), HP_OK);
    hp_work w = work("fwd.conv k3x3 s1 d1 g1 i8 o8 f32", 150, 1, 1);
    hp_cost c = hp_cost_compute(t, &m, &w);
    assert_true(near(c.seconds, 2e-4, 1e-12) && near(c.low, 1.8e-4, 1e-12) && near(c.high, 2.2e-4, 1e-12));
    assert_int_equal(c.source, HP_SOURCE_MEASURED);
    w.size = 1e6; /* far beyond the measured sizes */
    assert_int_equal(hp_cost_compute(t, &m, &w).source, HP_SOURCE_GUESS);
    w = work("fwd.conv k5x5 s1 d1 g1 i8 o8 f32", 150, 2e10, 7);
    assert_true(near(hp_cost_compute(t, &m, &w).seconds, 1e-6 + 2, 1e-12));
    w = work("bwd.conv k5x5 s1 d1 g1 i8 o8 f32", 150, 1e12, 1e3);
    c = hp_cost_compute(t, &m, &w);
    assert_int_equal(c.source, HP_SOURCE_GUESS);
    assert_true(c.seconds >= 1e12 / m.device.flops_per_s); /* never above the data sheet's peak */
    assert_true(hp_cost_share(t, &m, &w) == 0.5);          // NOLINT: unmeasured: its core
    w = work("fwd.conv k5x5 s1 d1 g1 i8 o8 f32", 150, 1, 1);
    assert_true(hp_cost_share(t, &m, &w) == 0.6); // NOLINT
    assert_true(near(hp_cost_p2p(t, &m, HP_WIRE_ANY, true, 500000).seconds, 100.5e-6, 1e-9));
    assert_true(near(hp_cost_p2p(t, &m, HP_WIRE_ANY, false, 1e9).seconds, 1 + 5e-5,
                     1e-9)); /* the data sheet's line */
    const hp_collective_call sum = {HP_WIRE_OWN, HP_ALGORITHM_RING, HP_COLLECTIVE_ALLREDUCE, 2, 2};
    assert_true(near(hp_cost_collective(t, &m, &sum, 1024).seconds, 2e-6, 1e-12));
    hp_arena_free(arena);
}

/* Two ranks read memory at two thirds of the speed of one, and compute equally fast. */
static void unmeasured_shares_are_those_of_the_yardsticks(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    const hp_cost_table *t =
        parse(arena, "hplan-cost 2\nmachine local\ndate 2026-01-02\n"
                     "yardstick cpu arith r1 | measured 0 9 | quiet:1e-4 mean:1e-4 spread:0\n"
                     "yardstick cpu arith r2 | measured 0 9 | quiet:1e-4 mean:1e-4 spread:0\n"
                     "yardstick cpu dram r1 | measured 0 9 | quiet:1e-4 mean:1e-4 spread:0\n"
                     "yardstick cpu dram r2 | measured 0 9 | quiet:1.5e-4 mean:1.5e-4 spread:0\n"
                     "yardstick cpu l2 r1 | measured 0 9 | quiet:1e-4 mean:1e-4 spread:0\n"
                     "yardstick cpu l2 r2 | measured 0 9 | quiet:1.1e-4 mean:1.1e-4 spread:0\n");
    const hp_work memory = work("copy.x f32", 1, 0, 1e9), near_by = work("copy.x f32", 1, 0, 1e5),
                  arithmetic = work("fwd.x f32", 1, 1e12, 1);
    assert_true(near(hp_cost_share(t, &m, &memory), 0.75, 1e-9));
    assert_true(near(hp_cost_share(t, &m, &near_by), 0.55, 1e-9));
    assert_true(near(hp_cost_share(t, &m, &arithmetic), 0.5, 1e-6));
    hp_arena_free(arena);
}

static void a_missing_table_says_what_to_do(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    hp_error err;
    hp_cost_table *t;
    assert_int_equal(hp_cost_load(arena, "/nonexistent.cost", &m, &t, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "hplan calibrate"));
    hp_arena_free(arena);
}

/* --- fits --- */

static void fits_recover_what_made_the_data(void **state) {
    (void)state;
    enum { N = 60 };
    hp_fit_sample s[N];
    for (int i = 0; i < N; i++) {
        const double flops = 1e4 * exp2(14 * hp_rng_uniform(1, 1, (uint64_t)i)),
                     bytes = 1e3 * exp2(14 * hp_rng_uniform(1, 2, (uint64_t)i));
        const double noise = 1 + 0.01 * hp_rng_normal(1, 3, (uint64_t)i);
        s[i] = (hp_fit_sample){flops, bytes, (4e-6 + flops / 3e10 + bytes / 8e9) * noise};
    }
    for (int i = 0; i < N; i += 12) s[i].seconds *= 5; /* interrupted by the system */
    hp_fit fit;
    assert_true(hp_fit_work(s, N, &fit));
    assert_true(near(fit.flops_per_s, 3e10, 0.03) && near(fit.bytes_per_s, 8e9, 0.05) &&
                near(fit.launch_s, 4e-6, 0.1));
    assert_true(fit.residual < 0.04); /* 1.645 times the noise, partly hidden by interrupted samples */
    assert_false(hp_fit_work(s, 2, &fit));
    const double bytes[] = {0, 1000, 100000, 10000000};
    double seconds[4], alpha, beta;
    for (int i = 0; i < 4; i++) seconds[i] = 2e-6 + bytes[i] * 3e-10;
    assert_true(hp_fit_alpha_beta(bytes, seconds, 4, &alpha, &beta));
    assert_true(near(alpha, 2e-6, 1e-6) && near(beta, 3e-10, 1e-6));
}

/* No term of a fit is negative, whatever the data. */
static void fits_never_go_negative(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        hp_fit_sample s[8];
        for (uint64_t i = 0; i < 8; i++)
            s[i] = (hp_fit_sample){1e6 * hp_rng_uniform(seed, 1, i), 1e6 * hp_rng_uniform(seed, 2, i),
                                   1e-5 * (0.01 + hp_rng_uniform(seed, 3, i))};
        hp_fit f;
        if (!hp_fit_work(s, 8, &f)) continue;
        assert_true(f.launch_s >= 0 && f.flops_per_s >= 0 && f.bytes_per_s >= 0 && isfinite(f.residual));
    }
}

/* --- calibration --- */

static int count_rows(const hp_cost_table *t, hp_row_kind kind, const char *key_begins) {
    int n = 0;
    for (int i = 0; i < t->n; i++)
        n += t->row[i].kind == kind && strncmp(t->row[i].key, key_begins, strlen(key_begins)) == 0;
    return n;
}

static void a_calibrated_table_predicts_the_runs_it_came_from(void **state) {
    (void)state;
    static const char *const measured[] = {"dp=1",         "micro=2",          "micro=4", "dp=2",
                                           "dp=2,micro=2", "stages=2,micro=2", "sp=2x1"};
    static const char *const asked[] = {"dp=1",         "micro=4",          "dp=2",
                                        "dp=2,micro=2", "stages=2,micro=2", "stages=2,micro=4,sched=1f1b",
                                        "sp=2x1",       "sp=2x1,micro=2",   "sp=2x1,halo=2"};
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    hp_cost_table *t = calibrate(arena, &m, HP_MODE_TRAIN, measured, 7), *shipped;
    hp_error err;
    assert_int_equal(hp_cost_load(arena, NULL, &m, &shipped, &err), HP_OK);
    t->base = shipped->base ? shipped->base : shipped;
    for (int i = 0; i < 9; i++) {
        const hp_plan plan = make_plan(arena, &m, HP_MODE_TRAIN, asked[i], 4);
        const double truth = execute(arena, &plan, scratch_path("truth.db")),
                     guess = predict(arena, t, &plan);
        if (!near(guess, truth, i < 2 ? 1e-3 : 0.03))
            fail_msg("%s: predicted %g, true %g", asked[i], guess, truth);
    }
    hp_work w = work("fwd.conv x f32", 1, 1, 1);
    assert_true(near(hp_cost_share(t, &m, &w), 0.6, 0.03)); /* the made-up machine's behaviour */
    static const char *const of_tiles[] = {"copy f32 w", "copy add f32 w", "zero f32"};
    for (int i = 0; i < 3; i++) assert_true(count_rows(t, HP_ROW_COMPUTE, of_tiles[i]) > 0);
    hp_arena_free(arena);
}

static void a_new_calibration_keeps_what_it_did_not_measure(void **state) {
    (void)state;
    static const char *const one[] = {"dp=1"};
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    hp_cost_table *old = parse(arena, good), *t;
    hp_error err;
    hp_calibration *c = hp_calibration_new(arena, &m);
    hp_db db = {0};
    assert_int_equal(hp_calibration_table(c, NULL, "d", &t, &err), HP_EDATA);
    const hp_plan plan = make_plan(arena, &m, HP_MODE_TRAIN, one[0], 2);
    execute(arena, &plan, scratch_path("one.db"));
    assert_int_equal(hp_db_open(scratch_path("one.db"), &db, &err), HP_OK);
    assert_int_equal(hp_calibration_add(c, "one", 0, &db, &err), HP_OK);
    hp_db_close(&db);
    assert_int_equal(hp_calibration_table(c, old, "d", &t, &err), HP_OK);
    assert_non_null(hp_rows_find(t, HP_ROW_COMPUTE, "cpu", "fwd.conv k3x3 s1 d1 g1 i8 o8 f32"));
    assert_non_null(hp_rows_find(t, HP_ROW_P2P, "shm", ""));
    hp_cost_table *again;
    assert_int_equal(hp_rows_write(t, scratch_path("kept.cost"), &err), HP_OK);
    assert_int_equal(hp_cost_load(arena, scratch_path("kept.cost"), &m, &again, &err),
                     HP_OK); /* sorted: parses */
    assert_int_equal(again->n, t->n);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yardsticks_without_a_time_say_nothing_of_the_speed),
        cmocka_unit_test(lines_are_exact_at_their_points_and_monotone_between),
        cmocka_unit_test(text_survives_a_round_trip),
        cmocka_unit_test(odd_lines_are_errors_with_their_number),
        cmocka_unit_test(rows_of_older_versions_are_left_out_and_said),
        cmocka_unit_test(damaged_text_is_survived),
        cmocka_unit_test(measured_rows_come_before_fits_before_the_roofline),
        cmocka_unit_test(unmeasured_shares_are_those_of_the_yardsticks),
        cmocka_unit_test(a_missing_table_says_what_to_do),
        cmocka_unit_test(fits_recover_what_made_the_data),
        cmocka_unit_test(fits_never_go_negative),
        cmocka_unit_test(a_calibrated_table_predicts_the_runs_it_came_from),
        cmocka_unit_test(a_new_calibration_keeps_what_it_did_not_measure),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
