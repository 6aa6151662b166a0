/* test_drift.c - a machine whose speed drifts yields the table of the quiet one. Rows are compared with a
 * machine of known times, with and without yardsticks, for many courses of the drift. */
#include "costmodels/drift.h"
#include "costmodels/jitter_fit.h"
#include "costmodels/cost_speed.h"
#include "tests/support/sim/made_up_machine.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const JOBS[] = {"dp=1", "micro=2", "micro=4", "dp=2", "dp=2,micro=2", "sp=2x1"};
enum { N_JOBS = sizeof JOBS / sizeof *JOBS, STEPS = 40 };

/* Runs each job twice, each time with another course of the drift. */
static hp_cost_table *calibrate_absent(hp_arena *arena, const hp_machine *m, uint64_t seed, bool yardsticks,
                                       double availability) {
    hp_error err = {HP_OK, ""};
    hp_calibration *c = hp_calibration_new(arena, m);
    hp_cost_table *t = NULL;
    const char *path = scratch_path("drift.db");
    for (int i = 0; i < 2 * N_JOBS; i++) {
        const hp_plan plan = make_plan(arena, m, HP_MODE_TRAIN, JOBS[i % N_JOBS], 4);
        const drifting d = {seed ? 100 * seed + (uint64_t)i : 0, STEPS, yardsticks, availability};
        hp_db db = {0};
        execute_drifting(arena, &plan, &d, path);
        assert_int_equal(hp_db_open(path, &db, &err), HP_OK);
        if (hp_calibration_add(c, JOBS[i % N_JOBS], 0, &db, &err) != HP_OK) fail_msg("%s", err.text);
        hp_db_close(&db);
    }
    if (hp_calibration_table(c, NULL, "2026-01-01", &t, &err) != HP_OK) fail_msg("%s", err.text);
    return t;
}

enum { SEEDS = 6 };

/* Calibrates a machine of two cores. Caches the tables, because several tests want the same one. */
static const hp_cost_table *calibrate_drifting(uint64_t seed, bool yardsticks) {
    static const hp_cost_table *kept[SEEDS + 1][2];
    const hp_machine m = local_like(2);
    if (!kept[seed][yardsticks])
        kept[seed][yardsticks] = calibrate_absent(hp_arena_new(), &m, seed, yardsticks, 1);
    return kept[seed][yardsticks];
}

/* Root mean square of the logarithms of rows relative to their true values. */
static double error_of(const hp_cost_table *t, const hp_cost_table *truth, hp_row_kind kind) {
    double squares = 0;
    int n = 0;
    for (int i = 0; i < truth->n; i++) {
        const hp_row *want = &truth->row[i];
        if (want->kind != kind) continue;
        const hp_row *have = hp_rows_find(t, kind, want->class, want->key);
        assert_non_null(have);
        assert_int_equal(have->n, want->n);
        for (int k = 0; k < want->n; k++) squares += pow(log(have->y[k] / want->y[k]), 2), n++;
    }
    assert_true(n > 0);
    return sqrt(squares / n);
}

static void rows_are_those_of_the_quiet_machine(void **state) {
    (void)state;
    const bool all = law_all("five more courses of a machine's speed");
    const hp_cost_table *truth = calibrate_drifting(0, false);
    for (uint64_t seed = all ? 1 : 3; seed <= (all ? SEEDS : 3); seed++) {
        const hp_cost_table *with = calibrate_drifting(seed, true),
                            *without = calibrate_drifting(seed, false);
        const double corrected = error_of(with, truth, HP_ROW_COMPUTE),
                     raw = error_of(without, truth, HP_ROW_COMPUTE);
        print_message("seed %d: rows are %.1f %% off with yardsticks, %.1f %% without\n", (int)seed,
                      100 * corrected, 100 * raw);
        if (corrected > 0.05) fail_msg("seed %d: rows are %g off", (int)seed, corrected);
        if (error_of(with, truth, HP_ROW_SHARE) > 0.05)
            fail_msg("seed %d: shares are %g off", (int)seed, error_of(with, truth, HP_ROW_SHARE));
        if (raw <= 2 * corrected) fail_msg("seed %d: yardsticks do not help", (int)seed);
    }
}

/* A processor quota: what yardsticks, timed in processor time, cannot see. */
static void rows_leave_out_the_time_without_a_processor(void **state) {
    (void)state;
    const hp_machine m = local_like(2);
    hp_arena *arena = hp_arena_new();
    const hp_cost_table *truth = calibrate_drifting(0, false),
                        *with = calibrate_absent(arena, &m, 5, true, 0.6);
    assert_true(error_of(with, truth, HP_ROW_COMPUTE) < 0.05);
    if (law_all("rows without yardsticks have the time without a processor"))
        assert_true(error_of(calibrate_absent(arena, &m, 5, false, 0.6), truth, HP_ROW_COMPUTE) > 0.4);
    hp_arena_free(arena);
}

static void yardstick_rows_say_what_is_quiet_and_what_is_usual(void **state) {
    (void)state;
    const hp_cost_table *t = calibrate_drifting(3, true), *quiet = calibrate_drifting(0, true);
    for (int ranks = 1; ranks <= 2; ranks++) {
        const hp_row *row = hp_yardstick_row(t, "cpu", HP_YARD_L2, ranks);
        assert_non_null(row);
        assert_true(near(row->y[HP_YARDSTICK_QUIET], 1e-9 * YARDSTICK_NS, 0.04)); /* readings have an error of
                                                                                   * 2 % */
        assert_true(row->y[HP_YARDSTICK_MEAN] > 1.05 * row->y[HP_YARDSTICK_QUIET]);
        assert_true(row->y[HP_YARDSTICK_SPREAD] > 0.03);
    }
    assert_true(hp_cost_speed(t)->slowdown[HP_YARD_L2] > 1.05);
    const hp_row *row = hp_yardstick_row(quiet, "cpu", HP_YARD_L2, 1);
    assert_true(row->y[HP_YARDSTICK_SPREAD] < 0.01);
    assert_true(near(row->y[HP_YARDSTICK_MEAN], row->y[HP_YARDSTICK_QUIET], 0.05));
}

/* An Ornstein-Uhlenbeck process sampled at irregular times, with an error that does not persist. */
static void jitter_is_recovered_from_irregular_readings(void **state) {
    (void)state;
    enum { SERIES = 40, READINGS = 200, N = SERIES * READINGS };
    const double cv[] = {0.1, 0.3}, tau_s[] = {0.004, 0.03}, noise = 0.05;
    hp_jitter_reading *r = malloc(sizeof *r * N);
    assert_non_null(r);
    for (int c = 0; c < 2; c++) {
        for (int s = 0, n = 0; s < SERIES; s++) {
            const uint64_t seed = (uint64_t)(100 * c + s + 1);
            double z = hp_rng_normal(seed, 1, 0), t_s = 0;
            for (int i = 0; i < READINGS; i++, n++) {
                const double step_s = 0.01 * hp_rng_uniform(seed, 2, (uint64_t)i),
                             rho = exp(-step_s / tau_s[c]);
                t_s += step_s;
                z = rho * z + sqrt(1 - rho * rho) * hp_rng_normal(seed, 1, (uint64_t)i + 1);
                r[n] =
                    (hp_jitter_reading){s, t_s, 1 + cv[c] * z + noise * hp_rng_normal(seed, 3, (uint64_t)i)};
            }
        }
        const hp_core_jitter j = hp_jitter_fit(r, N);
        if (!near(j.cv, cv[c], 0.1) || !near(j.tau_s, tau_s[c], 0.25))
            fail_msg("cv %g for %g, tau %g for %g", j.cv, cv[c], j.tau_s, tau_s[c]);
    }
    for (int i = 0; i < N; i++) r[i].value = 1 + noise * hp_rng_normal(9, 9, (uint64_t)i);
    assert_true(hp_jitter_fit(r, N).cv < noise / 2); /* errors that do not persist are not a process */
    assert_true(near(hp_jitter_averaged(1e-3), 1, 1e-3) && near(hp_jitter_averaged(1000), 2e-3, 2e-3));
    free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_quiet_machine),
        cmocka_unit_test(rows_leave_out_the_time_without_a_processor),
        cmocka_unit_test(yardstick_rows_say_what_is_quiet_and_what_is_usual),
        cmocka_unit_test(jitter_is_recovered_from_irregular_readings),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
