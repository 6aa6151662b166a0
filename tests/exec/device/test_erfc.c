/* test_erfc.c - float32's exp and erfc, and GELU made of them, against the C library's in float64. */
#include "exec/device/device_act.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { STEPS = 200000 };

/* Relative error: rounding of the exponent, which is as large as x or z^2. */
static void exp_is_within_rounding(void **state) {
    (void)state;
    for (int i = 0; i <= STEPS; i++) {
        const float x = -86.0f * (float)i / STEPS;
        const double want = exp((double)x);
        assert_true(fabs((double)hp_exp_f32(x) - want) <= 0x1p-22 * want);
    }
    assert_true(hp_exp_f32(-INFINITY) < 1e-37f && hp_exp_f32(-1000) >= 0);
    assert_true(isnan(hp_exp_f32(NAN)));
}

static void erfc_is_within_its_bound(void **state) {
    (void)state;
    for (int i = -STEPS; i <= STEPS; i++) {
        const float x = 8.0f * (float)i / STEPS;
        const double want = erfc((double)x), z = fabs((double)x);
        assert_true(fabs((double)hp_erfc_f32(x) - want) <= (1.2e-7 + 0x1p-23 * (3 + z * z)) * want);
    }
    assert_true(hp_erfc_f32(INFINITY) < 1e-37f && hp_erfc_f32(-INFINITY) == 2);
    assert_true(isnan(hp_erfc_f32(NAN)));
}

/* As accurate as the C library's float32 version: a few roundings of x. */
static void gelu_is_that_of_float64(void **state) {
    (void)state;
    for (int i = -STEPS; i <= STEPS; i++) {
        const float x = 12.0f * (float)i / STEPS;
        const double size = fabs((double)x);
        assert_true(fabs((double)hp_act_gelu_f32(x, 0, 0) - hp_act_gelu_f64((double)x, 0, 0)) <=
                    0x1p-22 * size);
        assert_true(fabs((double)hp_act_gelu_slope_f32(x, 0, 0) - hp_act_gelu_slope_f64((double)x, 0, 0)) <=
                    0x1p-21);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_within_rounding),
        cmocka_unit_test(erfc_is_within_its_bound),
        cmocka_unit_test(gelu_is_that_of_float64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
