/* test_nccl.c - the tuner's model against times that were measured with nccl-tests on eight A100, and against the sizes at
 * which NCCL changes its algorithm and protocol; it never gets faster with more bytes or more nodes. */
#include "costmodels/gpu/nccl.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* 12 NVLinks of 20 GB/s each, one node. */
static const hp_nccl_net dgx = {
    .ranks = 8, .per_node = 8, .chip = HP_NCCL_AMPERE, .nvlink = true, .intra_bytes_per_s = 240e9};
/* Two A100 a node, one HDR link: 24 GB/s. */
static const hp_nccl_net pairs = {.ranks = 32,
                                  .per_node = 2,
                                  .chip = HP_NCCL_AMPERE,
                                  .nvlink = true,
                                  .intra_bytes_per_s = 168e9,
                                  .net_bytes_per_s = 24e9};

/* SuperBench's log of nccl-tests, all-reduce on 8 A100-40 behind NVSwitch, microseconds. The tuner is for ranking ways: its
 * times up to 16 MiB are too low, by up to half. */
static void eight_gpus_take_what_was_measured(void **state) {
    (void)state;
    static const struct {
        double bytes, us, within;
    } log[] = {{1024, 36, 0.5},         {65536, 37, 0.5},        {1048576, 76, 0.5},
               {4194304, 110, 0.45},    {16777216, 225, 0.25},   {67108864, 582, 0.1},
               {268435456, 2112, 0.05}, {1073741824, 8177, 0.05}};
    for (size_t i = 0; i < sizeof log / sizeof *log; i++) {
        const double us = 1e6 * hp_nccl_choose(HP_NCCL_ALLREDUCE, &dgx, log[i].bytes).seconds;
        if (fabs(us / log[i].us - 1) > log[i].within)
            fail_msg("%.0f bytes: %.1f us, measured %.1f", log[i].bytes, us, log[i].us);
    }
}

/* The first size, in powers of two, at which it is no longer the one before. */
static void ways_change_where_nccl_changes_them(void **state) {
    (void)state;
    static const struct {
        double bytes;
        bool tree;
        int protocol;
    } one_node[] = {{1 << 16, false, 0}, {8 << 20, false, 1}, {256 << 20, false, 2}},
      many[] = {{4096, true, 0}, {1 << 20, true, 1}, {16 << 20, false, 1}, {512 << 20, false, 2}};
    for (size_t i = 0; i < 3; i++) {
        const hp_nccl_choice c = hp_nccl_choose(HP_NCCL_ALLREDUCE, &dgx, one_node[i].bytes);
        if (c.tree != one_node[i].tree || c.protocol != one_node[i].protocol)
            fail_msg("one node, %.0f bytes: tree %d protocol %d", one_node[i].bytes, c.tree, c.protocol);
    }
    for (size_t i = 0; i < 4; i++) {
        const hp_nccl_choice c = hp_nccl_choose(HP_NCCL_ALLREDUCE, &pairs, many[i].bytes);
        if (c.tree != many[i].tree || c.protocol != many[i].protocol)
            fail_msg("16 nodes, %.0f bytes: tree %d protocol %d", many[i].bytes, c.tree, c.protocol);
    }
}

/* Large data are moved at the ring's bandwidth: 2 (p-1)/p of it over the slowest link. */
static void large_data_take_the_links_time(void **state) {
    (void)state;
    const double bytes = 64e9;
    const double ring_s = 2.0 * 31 / 32 * bytes / 24e9;
    assert_true(fabs(hp_nccl_choose(HP_NCCL_ALLREDUCE, &pairs, bytes).seconds / ring_s - 1) < 0.01);
    assert_true(fabs(hp_nccl_choose(HP_NCCL_HALF, &pairs, bytes).seconds / (ring_s / 2) - 1) < 0.01);
}

static void nothing_comes_for_free(void **state) {
    (void)state;
    for (int power = 6; power < 34; power++) {
        const double bytes = ldexp(1, power);
        hp_nccl_net n = pairs;
        double before = 0;
        for (n.ranks = 4; n.ranks <= 4096; n.ranks *= 2) {
            const double s = hp_nccl_choose(HP_NCCL_ALLREDUCE, &n, bytes).seconds;
            if (s < before) fail_msg("%.0f bytes: %d ranks take less than half as many", bytes, n.ranks);
            before = s;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_gpus_take_what_was_measured),
        cmocka_unit_test(ways_change_where_nccl_changes_them),
        cmocka_unit_test(large_data_take_the_links_time),
        cmocka_unit_test(nothing_comes_for_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
