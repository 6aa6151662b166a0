/* test_infer.c - costs of inference: rates by type without measurements, notes on tasks for which similar
 * ones were measured; a table calibrated from inference predicts inference, and training as before. */
#include "costmodels/models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/sim/made_up_machine.h"
#include "plan/program/work.h"

static hp_work work(const char *key, double size, double flops, double bytes) {
    hp_work w = {.size = size, .flops = flops, .bytes = bytes};
    snprintf(w.key, sizeof w.key, "%s", key);
    return w;
}

static hp_cost_table *load(hp_arena *arena, const hp_machine *m, const char *text) {
    hp_error err;
    hp_cost_table *t = NULL;
    const char *path = text ? scratch_write("some.cost", text, strlen(text)) : NULL;
    if (hp_cost_load(arena, path, m, &t, &err) != HP_OK) fail_msg("%s", err.text);
    return t;
}

/* Data sheets: an A100 multiplies 8-bit integers 32 times as fast as float32, 16-bit floats 16 times; a V100
 * has tensor cores for float16 only. Never more than the peak, nor less than 0.3 of it; a byte moves equally
 * fast in any type. */
static void types_have_rates_of_their_own(void **state) {
    (void)state;
    static const struct {
        const char *machine, *key;
        double peak; /* operations per second */
    } cases[] = {{"thesis-a100", "infer.conv k3x3 s1 d1 g1 i64 o64 f32 w9", 19.5e12},
                 {"thesis-a100", "infer.conv k3x3 s1 d1 g1 i64 o64 bf16 w9", 312e12},
                 {"thesis-a100", "infer.conv k3x3 s1 d1 g1 i64 o64 u8 w9", 624e12},
                 {"thesis-a100", "infer.conv k3x3 s1 d1 g1 i64 o64 u8>f32 w9", 624e12},
                 {"dgx-h200", "infer.conv k3x3 s1 d1 g1 i64 o64 u8 w9", 1979e12},
                 {"lassen", "infer.conv k3x3 s1 d1 g1 i64 o64 f16 w9", 125e12}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hp_arena *arena = hp_arena_new();
        hp_machine m;
        hp_error err;
        assert_int_equal(hp_machine_load(cases[i].machine, &m, &err), HP_OK);
        hp_cost_table *t = load(arena, &m, NULL);
        hp_work w = work(cases[i].key, 1, 1e15, 1);
        const double computes = hp_cost_compute(t, &m, &w).seconds;
        assert_true(computes >= 1e15 / cases[i].peak && computes <= 3.5e15 / cases[i].peak);
        w = work(cases[i].key, 1, 1, 1e13);
        assert_true(hp_cost_compute(t, &m, &w).seconds >= 1e13 / m.device.bytes_per_s);
        hp_arena_free(arena);
    }
}

static const char training_alone[] =
    "hplan-cost 2\nmachine local\ndate 2026-01-01\n"
    "compute cpu copy f32 | measured 0.1 9 here | 100:1e-6 200:2e-6\n"
    "compute cpu fwd.conv k3x3 s1 d1 g1 i8 o8 f32 w9 | measured 0.1 9 here | 100:1e-3 200:2e-3\n"
    "compute cpu fwd.conv k3x3 s1 d1 g8 i8 o8 f32 w9 | measured 0.1 9 here | 150:1.2e-3\n";

/* A calibration of training only: float32 inference takes as long, 8 bits are faster according to the rates,
 * and all are guesses; training costs do not change at all. */
static void likes_stand_in(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    hp_cost_table *t = load(arena, &m, training_alone);
    hp_work w = work("fwd.conv k3x3 s1 d1 g1 i8 o8 f32 w9", 150, 1e9, 1e3);
    assert_true(near(hp_cost_compute(t, &m, &w).seconds, 1.5e-3, 1e-9));
    w = work("infer.conv k3x3 s1 d1 g1 i8 o8 add f32 w9", 150, 1e9, 1e3);
    hp_cost c = hp_cost_compute(t, &m, &w);
    assert_true(near(c.seconds, 1.5e-3, 1e-9) && c.low < c.seconds && c.high > 1.2 * c.seconds);
    assert_int_equal(c.source, HP_SOURCE_GUESS);
    w = work("infer.conv k3x3 s1 d1 g1 i8 o8 u8 w9", 150, 1e9, 1e3);
    assert_true(near(hp_cost_compute(t, &m, &w).seconds, 1.5e-3 / 3.8, 1e-2));
    w = work("infer.depthwise k3x3 s1 d1 g8 i8 o8 f32 w9", 150, 1e9, 1e3);
    assert_true(near(hp_cost_compute(t, &m, &w).seconds, 1.2e-3, 1e-9));
    w = work("infer.copy u8", 150, 0, 300); /* bytes are bytes */
    assert_true(near(hp_cost_compute(t, &m, &w).seconds, 1.5e-6, 1e-9));
    hp_arena_free(arena);
}

/* Strips, tiles and stages of the made-up machine, from runs of one rank, two concurrent ranks, and two
 * tiles. Calibrating inference changes nothing for training. */
static void a_calibrated_table_predicts_inference(void **state) {
    (void)state;
    static const char *const measured[] = {"prec=int8",
                                           "micro=4,prec=int8",
                                           "micro=4,strips=4,prec=int8",
                                           "dp=2,prec=int8",
                                           "dp=2,micro=2,strips=4,prec=int8",
                                           "sp=2x1,micro=4,prec=int8"};
    static const char *const asked[] = {"prec=int8",
                                        "micro=4,prec=int8",
                                        "micro=4,strips=4,prec=int8",
                                        "micro=4,strips=8,prec=int8",
                                        "micro=4,strips=4,deep=5,prec=int8",
                                        "dp=2,prec=int8",
                                        "stages=2,micro=4,prec=int8",
                                        "sp=2x1,micro=4,prec=int8"};
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2);
    hp_cost_table *t = calibrate(arena, &m, HP_MODE_INFER, measured, 6);
    const hp_cost_table *here = load(arena, &m, NULL), *shipped = here->base ? here->base : here;
    t->base = shipped;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const hp_plan plan = make_plan(arena, &m, HP_MODE_INFER, asked[i], 4);
        const double truth = execute(arena, &plan, scratch_path("truth.db")),
                     guess = predict(arena, t, &plan);
        if (!near(guess, truth, 0.05)) fail_msg("%s: predicted %g, true %g", asked[i], guess, truth);
    }
    const hp_plan plan = make_plan(arena, &m, HP_MODE_TRAIN, "dp=1", 4);
    assert_true(predict(arena, t, &plan) == predict(arena, shipped, &plan)); // NOLINT: the same figures
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_have_rates_of_their_own),
        cmocka_unit_test(likes_stand_in),
        cmocka_unit_test(a_calibrated_table_predicts_inference),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
