/* test_tiles.c - how full a device is: closed forms for products that fill it, miss a tile's edge, or leave a
 * wave half empty; long sums are split; more work never takes less time. */
#include "costmodels/gpu/tiles.h"

#include "base/rng.h"
#include "tests/support/plan/law_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A single tile size, and sums without a start-up cost. */
static const hp_tiling plain = {
    .rows = 128, .cols = 128, .least = 128, .penalty = 1, .fill = 0, .units = 100};

static void close_to(double a, double b) {
    if (fabs(a - b) > 1e-12) fail_msg("%.15g is not %.15g", a, b);
}

static void products_fill_a_device_or_not(void **state) {
    (void)state;
    close_to(hp_tiling_fraction(&plain, 1280, 1280, 1), 1);          /* 100 tiles */
    close_to(hp_tiling_fraction(&plain, 1280, 640, 1), 0.5);         /* 50 */
    close_to(hp_tiling_fraction(&plain, 1280, 1408, 1), 110 / 200.); /* two waves, the second of 10 */
    close_to(hp_tiling_fraction(&plain, 12800, 64, 1), 0.5);         /* half of each tile */
    close_to(hp_tiling_busy(&plain, 12800, 64, 1), 1);
    close_to(hp_tiling_busy(&plain, 1280, 1408, 1), 110 / 200.);
}

/* Five tiles of long sums become a hundred parts; sums of 1024 terms become two parts each. */
static void long_sums_are_split(void **state) {
    (void)state;
    close_to(hp_tiling_fraction(&plain, 640, 128, 1e6), 1);
    close_to(hp_tiling_fraction(&plain, 640, 128, 1024), 0.1);
    close_to(hp_tiling_fraction(&plain, 640, 128, 511), 0.05);
}

static void short_sums_wait_for_their_first_terms(void **state) {
    (void)state;
    hp_tiling t = plain;
    t.fill = 96;
    close_to(hp_tiling_fraction(&t, 1280, 1280, 96), 0.5);
    close_to(hp_tiling_fraction(&t, 1280, 1280, 288), 0.75);
}

/* One tile of 1024 terms on two multiprocessors: either 1024 x 128 x 128 multiply-adds on one of them, or
 * half the time plus writing and reading both partial sums. Splitting pays while adding them takes less than
 * it saves. */
static void sums_are_split_where_that_is_faster(void **state) {
    (void)state;
    hp_tiling t = plain;
    t.units = 2;
    t.flops_per_s = 2 * 2. * 128 * 128; /* one term of both multiprocessors' tiles per second */
    t.bytes_per_s = 8. * 128 * 128;
    t.split_s = 500;
    close_to(hp_tiling_seconds(&t, 128, 128, 1024), 512 + 500 + 2);
    close_to(hp_tiling_busy(&t, 128, 128, 1024), 1);
    t.split_s = 511;
    close_to(hp_tiling_seconds(&t, 128, 128, 1024), 1024);
    close_to(hp_tiling_busy(&t, 128, 128, 1024), 0.5);
    t.split_s = 500;
    t.depth = 1024; /* terms per part */
    close_to(hp_tiling_seconds(&t, 128, 128, 1024), 1024);
}

/* 16 channels: half of the smallest tile, three halvings. */
static void small_tiles_suit_few_channels(void **state) {
    (void)state;
    const hp_tiling t = {.rows = 128, .cols = 128, .least = 32, .penalty = 0.9, .units = 100};
    close_to(hp_tiling_fraction(&t, 1280000, 16, 1), 0.9 * 0.9 * 0.5);
    close_to(hp_tiling_fraction(&t, 1280000, 128, 1), 1);
}

/* Time is work over rate: a product that contains another never takes less time. */
static void more_work_never_takes_less_time(void **state) {
    (void)state;
    const hp_tiling t = {.rows = 256, .cols = 128, .least = 32, .penalty = 0.9, .fill = 96, .units = 108};
    for (uint64_t seed = 0; seed < law_cases(3000); seed++) {
        const double rows = 1 + (double)hp_rng_below(seed, 1, 0, 3000),
                     cols = 1 + (double)hp_rng_below(seed, 2, 0, 3000),
                     depth = 1 + (double)hp_rng_below(seed, 3, 0, 400);
        const double f = hp_tiling_fraction(&t, rows, cols, depth),
                     wider = hp_tiling_fraction(&t, rows, cols + 1, depth),
                     busy = hp_tiling_busy(&t, rows, cols, depth);
        if (!(f > 0 && f <= 1 && busy > 0 && busy <= 1)) fail_msg("%g x %g: %g, %g", rows, cols, f, busy);
        if (rows * (cols + 1) / wider < rows * cols / f * (1 - 1e-12))
            fail_msg("%g x %g: less time with a column more", rows, cols);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_fill_a_device_or_not),
        cmocka_unit_test(long_sums_are_split),
        cmocka_unit_test(sums_are_split_where_that_is_faster),
        cmocka_unit_test(short_sums_wait_for_their_first_terms),
        cmocka_unit_test(small_tiles_suit_few_channels),
        cmocka_unit_test(more_work_never_takes_less_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
