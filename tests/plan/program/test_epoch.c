/* test_epoch.c - speed-up, epochs, energy and cost, computed by hand; operations of published networks. */
#include "networks/nets/nets.h"
#include "plan/program/epoch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void close_to(double value, double expected, double within) {
    if (!(fabs(value - expected) <= within)) fail_msg("%.15g, not %.15g", value, expected);
}

/* From 8 to 256 devices at 90 % of the ideal. */
static void efficiency_is_the_share_of_the_ideal(void **state) {
    (void)state;
    const double speedup = hp_speedup(2880, 100);
    close_to(speedup, 28.8, 1e-12);
    close_to(hp_efficiency(speedup, 256, 8), 0.9, 1e-12);
    close_to(hp_efficiency(hp_speedup(7, 7), 8, 8), 1, 1e-12);
    assert_true(isnan(hp_speedup(1, 0)));
}

/* 10,000 samples in batches of 96 are 104 whole batches and a partial one; half a second each; 8 devices of
 * 300 W at 2.50 an hour. */
static void an_epoch_by_hand(void **state) {
    (void)state;
    hp_epoch_question q = {.samples = 10000,
                           .batch = 96,
                           .whole = true,
                           .step_s = 0.5,
                           .gpus = 8,
                           .tdp_w = 300,
                           .price = 2.5,
                           .sample_flops = 1e12,
                           .device_flops_per_s = 48e12};
    hp_epoch e = hp_epoch_of(&q);
    close_to(e.epoch_s, 52, 1e-12);
    close_to(e.gpu_hours, 416.0 / 3600, 1e-12);
    close_to(e.energy_kwh, 124.8 / 3600, 1e-12); /* 2.4 kW */
    close_to(e.cost, 1040.0 / 3600, 1e-12);
    close_to(e.flop_utilisation, 0.5, 1e-12); /* 192 of 384 TFLOP/s */
    q.whole = false;
    close_to(hp_epoch_of(&q).epoch_s, 52.5, 1e-12);
}

static void what_is_not_known_is_not_a_number(void **state) {
    (void)state;
    const hp_epoch_question q = {.samples = 95, .batch = 96, .whole = true, .step_s = 0.5, .gpus = 1};
    const hp_epoch e = hp_epoch_of(&q);
    assert_true(isnan(e.epoch_s) && isnan(e.gpu_hours) && isnan(e.energy_kwh) && isnan(e.cost));
    assert_true(isnan(e.flop_utilisation));
}

/* Multiplications and additions per image: torchvision's table of models gives 1.81, 4.09 and 7.80 GFLOPS,
 * one per pair, rounded to two digits. */
static void published_networks_have_their_operations(void **state) {
    (void)state;
    static const struct {
        const char *net;
        double gmacs;
    } rows[] = {{"resnet18", 1.81}, {"resnet50", 4.09}, {"resnet101", 7.80}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hp_arena *arena = hp_arena_new();
        hp_graph *g = NULL;
        assert_int_equal(hp_net_build(arena, rows[i].net, 224, 224, 1000, &g, NULL), HP_OK);
        close_to(hp_model_flops(g, false) / 2e9, rows[i].gmacs, 0.006);
        close_to(hp_model_flops(g, true), 3 * hp_model_flops(g, false), 1);
        hp_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(efficiency_is_the_share_of_the_ideal),
        cmocka_unit_test(an_epoch_by_hand),
        cmocka_unit_test(what_is_not_known_is_not_a_number),
        cmocka_unit_test(published_networks_have_their_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
