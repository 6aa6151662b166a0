/* test_unknown.c - devices without a data sheet: what must be specified, and what is assumed. */
#include "machines/machine.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define NODES "nodes=8; node=3 x "

static hp_machine parsed(const char *text) {
    hp_machine m;
    hp_error err = {0};
    if (hp_machine_parse(text, "x.machine", &m, &err) != HP_OK) fail_msg("%s", err.text);
    return m;
}

/* An unknown device may be like a known one, which is reported; its other rates scale with the given one. */
static void an_unknown_device_is_said_with_the_one_assumed(void **state) {
    (void)state;
    const hp_machine m =
        parsed(NODES "Abacus 9000; device=Abacus 9000, memory=40GB, fp32=39TFLOP/s, bandwidth=2TB/s");
    assert_string_equal(m.device.name, "abacus-9000");
    assert_non_null(strstr(m.assumed, "\"Abacus 9000\" is unknown"));
    const hp_gpu_model *like = hp_gpu_model_nearest(
        &(hp_device_class){.memory_bytes = INT64_C(40000000000), .flops_per_s = 39e12, .bytes_per_s = 2e12});
    assert_non_null(strstr(m.assumed, like->device.name));
    assert_false(m.device.guessed);
    assert_true(fabs(m.device.bf16_flops_per_s / m.device.flops_per_s * like->device.flops_per_s /
                         like->device.bf16_flops_per_s -
                     1) < 1e-9);
}

/* An unspecified speed is assumed to be the least of all data sheets; the machine's text keeps that until it
 * is specified. */
static void an_unknown_devices_rates_are_the_least(void **state) {
    (void)state;
    hp_machine m = parsed(NODES "Abacus 9000; device=Abacus 9000, memory=40GB");
    hp_error err = {HP_OK, ""};
    for (int i = 0; hp_gpu_model_at(i); i++)
        assert_true(m.device.flops_per_s <= hp_gpu_model_at(i)->device.flops_per_s &&
                    m.device.bytes_per_s <= hp_gpu_model_at(i)->device.bytes_per_s);
    assert_true(m.device.bf16_flops_per_s == m.device.flops_per_s); // NOLINT: the same
    assert_string_equal(m.intra.name, "pcie");
    assert_true(m.device.guessed);
    hp_arena *arena = hp_arena_new();
    assert_true(parsed(hp_machine_text(arena, &m)).device.guessed);
    hp_arena_free(arena);
    assert_int_equal(hp_machine_set(&m, "device=abacus-9000, fp32=39TFLOP/s", &err), HP_OK);
    assert_true(m.device.guessed);
    assert_int_equal(hp_machine_set(&m, "device=abacus-9000, fp32=39TFLOP/s, bandwidth=2TB/s", &err), HP_OK);
    assert_false(m.device.guessed);
    assert_int_equal(hp_machine_set(&m, "node=3 x a100-80", &err), HP_OK);
    assert_false(m.device.guessed);
    /* another GPU does not inherit the previous one's values */
    assert_int_equal(hp_machine_set(&m, "node=3 x foo", &err), HP_EUSAGE);
    assert_int_equal(hp_machine_set(&m, "node=3 x foo; device=foo, memory=40GB", &err), HP_OK);
    assert_true(m.device.guessed && m.device.flops_per_s < 10e12);
}

/* All that was assumed of several is said, each once. */
static void unknown_devices_of_a_mix_are_all_said(void **state) {
    (void)state;
    const hp_machine m =
        parsed("nodes=1; node=2 x foo + 2 x bar + 1 x t4; device=foo, memory=10GB; device=bar, memory=12GB");
    static const char *const said[] = {"\"foo\" is unknown", "\"bar\" is unknown", "inside a node"};
    for (int i = 0; i < 3; i++) {
        const char *first = strstr(m.assumed, said[i]);
        assert_non_null(first);
        assert_null(strstr(first + 1, said[i]));
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_device_is_said_with_the_one_assumed),
        cmocka_unit_test(an_unknown_devices_rates_are_the_least),
        cmocka_unit_test(unknown_devices_of_a_mix_are_all_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
