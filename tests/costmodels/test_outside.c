/* test_outside.c - predictions of a table that knows a few noisy sizes, for other sizes: bounded by the
 * device's roofline, never certain about unseen sizes, and no worse than a table that knows nothing. */
#include "costmodels/calibrate.h"
#include "costmodels/cost_fit.h"
#include "costmodels/cost_line.h"
#include "costmodels/models.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/sim/made_up_machine.h"

static const char HEAD[] = "hplan-cost 2\nmachine local\ndate 2026-01-02\n";

static hp_cost_table *table_of(hp_arena *arena, const hp_machine *m, const char *rows) {
    hp_cost_table *t = NULL;
    hp_error err;
    const char *text = hp_arena_printf(arena, "%s%s", HEAD, rows);
    const char *path = scratch_write("outside.cost", text, strlen(text));
    if (hp_cost_load(arena, path, m, &t, &err) != HP_OK) fail_msg("%s", err.text);
    return t;
}

static hp_work work(const char *key, double size, double flops, double bytes) {
    hp_work w = {.size = size, .flops = flops, .bytes = bytes};
    snprintf(w.key, sizeof w.key, "%s", key);
    return w;
}

/* Log-uniform. */
static double drawn(uint64_t seed, uint64_t i, double least, double most) {
    return least * pow(most / least, hp_rng_uniform(seed, 3, i));
}

/* A core of 0.19 TFLOP/s whose fit claims 6000, in this table and in that of a version that did not record
 * the sizes. */
static void no_fit_predicts_faster_than_the_roofline(void **state) {
    (void)state;
    static const char *const rows[] = {
        "fit cpu bwd.conv f32 | measured 0.1 9 | launch:0 flops:7.0e11 bytes:0\n",
        "fit cpu bwd.conv f32 | measured 0.1 9 | launch:0 flops:0 bytes:1.74e10\n",
        "fit cpu bwd.conv f32 | measured 0.1 9 | launch:0 flops:0 bytes:1.74e10 bytes_least:1e3 "
        "bytes_most:1e12 "
        "intensity_least:0 intensity_most:1e9 fastest:0\n",
        "compute cpu bwd.conv k3x3 s1 d1 g1 i8 o8 f32 w8 | measured 0.1 9 | 100:1e-4 1000:1.0001e-4\n"};
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const hp_cost_table *t = table_of(arena, &m, rows[r]);
        for (uint64_t i = 0; i < 300; i++) {
            const hp_work w = work("bwd.conv k3x3 s1 d1 g1 i8 o8 f32 w64", 1e4, drawn(1, 2 * i, 1e6, 1e13),
                                   drawn(1, 2 * i + 1, 1e4, 1e11));
            const hp_cost c = hp_cost_compute(t, &m, &w);
            if (c.seconds < w.flops / m.device.flops_per_s * (1 - 1e-9))
                fail_msg("row %zu: %g flop in %g s", r, w.flops, c.seconds);
            assert_true(isfinite(c.high) && c.low > 0 && c.low <= c.seconds && c.seconds <= c.high);
        }
    }
    hp_arena_free(arena);
}

/* A speed that was observed to exceed the guessed peak of a core is possible. */
static void a_faster_core_than_guessed_is_believed(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    const double peak = 2 * m.device.flops_per_s;
    const char *row = hp_arena_printf(
        arena,
        "fit cpu fwd.conv f32 | measured 0.1 9 | launch:0 flops:%.17g bytes:0 bytes_least:1e3 bytes_most:1e9 "
        "intensity_least:1 intensity_most:1e4 fastest:%.17g\n",
        peak, peak);
    const hp_work w = work("fwd.conv k3x3 f32 w8", 1, 1e9, 1e6);
    assert_true(near(hp_cost_compute(table_of(arena, &m, row), &m, &w).seconds, 1e9 / peak, 1e-9));
    hp_arena_free(arena);
}

/* A rate converted to a machine without other work is no proof; the rate on the clock is. */
static void the_fastest_rate_is_the_clocks(void **state) {
    (void)state;
    hp_fit_sample s[9];
    hp_fit quiet, slowed;
    for (int i = 0; i < 9; i++) {
        const double flops = 1e6 * (i + 1);
        s[i] = (hp_fit_sample){.flops = flops, .bytes = 1e4, .seconds = flops / 1e11};
    }
    assert_true(hp_fit_work(s, 9, &quiet));
    for (int i = 0; i < 9; i++) s[i].clock_s = 1.6 * s[i].seconds;
    assert_true(hp_fit_work(s, 9, &slowed));
    assert_true(near(quiet.fastest, 1e11, 1e-9) && near(slowed.fastest, 1e11 / 1.6, 1e-9));
    assert_true(near(slowed.flops_per_s, quiet.flops_per_s, 1e-9)); /* costs are the quiet machine's */
    assert_true(near(quiet.bytes_least, 1e4, 0) && near(quiet.intensity_most, 900, 1e-12));
}

/* By octaves outside the bytes or the intensity, or beyond a line's sizes or row lengths. */
static void outside_of_what_was_seen_nothing_is_measured(void **state) {
    (void)state;
    static const char ROWS[] =
        "compute cpu fwd.conv k3x3 s1 d1 g1 i8 o8 f32 w16 | measured 0.05 9 | 1000:1e-4 16000:1.6e-3\n"
        "fit cpu fwd.bn f32 | measured 0.1 9 | launch:1e-6 flops:0 bytes:2e9 bytes_least:1e4 bytes_most:1e6 "
        "intensity_least:0.5 intensity_most:2 fastest:0\n";
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    const hp_cost_table *t = table_of(arena, &m, ROWS), *empty = t->base;
    for (uint64_t i = 0; i < 400; i++) {
        const bool line = i % 2;
        const double x = exp2(-6 + 12 * hp_rng_uniform(2, 1, i)), y = exp2(-6 + 12 * hp_rng_uniform(2, 2, i));
        const int width = 1 << hp_rng_below(2, 3, i, 9); /* 1 .. 256 */
        char key[80];
        snprintf(key, sizeof key, "fwd.conv k3x3 s1 d1 g1 i8 o8 f32 w%d", width);
        const double side = fabs(log2(width / 16.0)), outside_line = fmax(fabs(log2(x)) - 2, side),
                     outside_fit = fmax(fabs(log2(x)) - 3.32, fabs(log2(y)) - 1);
        const hp_work w = line ? work(key, 4000 * x, 1e6 * x * width, 1e5 * x)
                               : work("fwd.bn c8 f32", 1, y * 1e5 * x, 1e5 * x);
        const double outside = line ? outside_line : outside_fit;
        const hp_cost c = hp_cost_compute(t, &m, &w), without = hp_cost_compute(empty, &m, &w);
        if (fabs(outside - HP_FAR_OCTAVES) < 0.05) continue;
        assert_int_equal(c.source, outside > HP_FAR_OCTAVES ? HP_SOURCE_GUESS : HP_SOURCE_MEASURED);
        const bool holds = c.low <= without.seconds * (1 + 1e-9) && without.seconds <= c.high * (1 + 1e-9);
        if (outside > HP_FAR_OCTAVES && !holds)
            fail_msg("%s, %g octaves outside: %g..%g s without %g", w.key, outside, c.low, c.high,
                     without.seconds);
    }
    hp_arena_free(arena);
}

/* With distance, the figure approaches the empty table's and the interval widens, without jumps. */
static void the_empty_table_takes_over_smoothly(void **state) {
    (void)state;
    const hp_cost measured = {1, 0.9, 1.1, HP_SOURCE_MEASURED}, empty = {3, 0.3, 6, HP_SOURCE_GUESS};
    double before = 1, width = 0.1;
    for (double octaves = 0; octaves < 200; octaves += 0.01) {
        const hp_cost c = hp_cost_outside(measured, empty, 0.01, octaves);
        assert_true(c.seconds >= before - 1e-12 && c.seconds < before + 0.02 && c.seconds <= 3);
        assert_true(fabs(c.high / c.seconds - 1 - width) < 0.1);
        before = c.seconds;
        width = c.high / c.seconds - 1;
    }
    assert_true(near(before, 3, 0.01) && near(width, 1, 0.02));
    const hp_cost inside = hp_cost_outside(measured, empty, 0.01, 0);
    assert_true(near(inside.seconds, 1, 0) && near(inside.high, 1.1, 1e-12));
    assert_true(near(hp_cost_outside(measured, empty, 2, 0).seconds, 2, 0)); /* never faster than possible */
}

/* A device of known truth, calibrated with a handful of sizes beside other work, with times up to five times
 * too long. Other sizes are predicted no worse than by a table that knows nothing, and better where the fit
 * is well determined. */
static void noisy_fits_of_few_sizes_do_no_harm(void **state) {
    (void)state;
    enum { TABLES = 60, OTHERS = 10 };
    double known = 0, unknown = 0, inside = 0;
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    for (uint64_t k = 0; k < TABLES; k++) {
        hp_fit_sample s[6];
        hp_fit f;
        for (uint64_t i = 0; i < 6; i++) {
            const double bytes = drawn(k, 10 + i, 1e4, 1e6), flops = bytes * drawn(k, 20 + i, 5, 20),
                         busy = 1 + (i % 2 ? 4 * hp_rng_uniform(k, 4, i) : 0);
            s[i] = (hp_fit_sample){flops, bytes, busy * (2e-6 + flops / 8e10 + bytes / 9e9)};
        }
        if (!hp_fit_work(s, 6, &f)) continue;
        const char *row = hp_arena_printf(
            arena,
            "fit cpu fwd.conv f32 | measured %g 6 | launch:%g flops:%g bytes:%g bytes_least:%g bytes_most:%g "
            "intensity_least:%g intensity_most:%g fastest:%g\n",
            f.residual, f.launch_s, f.flops_per_s, f.bytes_per_s, f.bytes_least, f.bytes_most,
            f.intensity_least, f.intensity_most, f.fastest);
        const hp_cost_table *t = table_of(arena, &m, row);
        for (uint64_t i = 0; i < OTHERS; i++) {
            const double bytes = drawn(k, 40 + i, 1e6, 1e9), flops = bytes * drawn(k, 60 + i, 20, 200),
                         truth = 2e-6 + flops / 8e10 + bytes / 9e9;
            const hp_work w = work("fwd.conv k7x7 f32 w300", 1, flops, bytes);
            const hp_cost c = hp_cost_compute(t, &m, &w), without = hp_cost_compute(t->base, &m, &w);
            known += fabs(log(c.seconds / truth));
            unknown += fabs(log(without.seconds / truth));
            inside += c.low <= truth && truth <= c.high;
        }
    }
    assert_true(known <= unknown);
    if (inside < 0.9 * TABLES * OTHERS) fail_msg("%g of %d inside", inside, TABLES * OTHERS);
    hp_arena_free(arena);
}

/* The rate of dense convolutions says nothing about depthwise ones. */
static void a_fit_of_dense_convolutions_is_none_of_grouped(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    const hp_cost_table *t = table_of(
        arena, &m,
        "fit cpu fwd.conv f32 | measured 0.1 9 | launch:0 flops:1e11 bytes:0 bytes_least:1 bytes_most:1e12 "
        "intensity_least:0 intensity_most:1e9 fastest:1e11\n");
    const hp_work dense = work("fwd.conv k3x3 s1 d1 g1 i96 o96 f32 w28", 1, 1e7, 1e6),
                  grouped = work("fwd.conv k3x3 s1 d1 g96 i96 o96 f32 w28", 1, 1e7, 1e6);
    assert_int_equal(hp_cost_compute(t, &m, &dense).source, HP_SOURCE_MEASURED);
    assert_int_equal(hp_cost_compute(t, &m, &grouped).source, HP_SOURCE_GUESS);
    char name[80];
    assert_string_equal(hp_key_fit(grouped.key, name, sizeof name), "fwd.conv.grouped f32");
    assert_string_equal(hp_key_fit("infer.depthwise k3x3 s1 d1 g96 i96 o96 f32 w28", name, sizeof name),
                        "infer.depthwise f32"); /* apart already */
    assert_string_equal(hp_key_fit("copy f32 w64", name, sizeof name), "copy f32");
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_fit_predicts_faster_than_the_roofline),
        cmocka_unit_test(a_faster_core_than_guessed_is_believed),
        cmocka_unit_test(the_fastest_rate_is_the_clocks),
        cmocka_unit_test(outside_of_what_was_seen_nothing_is_measured),
        cmocka_unit_test(the_empty_table_takes_over_smoothly),
        cmocka_unit_test(a_fit_of_dense_convolutions_is_none_of_grouped),
        cmocka_unit_test(noisy_fits_of_few_sizes_do_no_harm),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
