/* test_nccl.c - the tuner's model, compared with nccl-tests on eight A100s, and with the sizes at which NCCL
 * changes its algorithm and protocol. It never gets faster with more bytes or more nodes. */
#include "costmodels/gpu/gpu_nccl.h"
#include "costmodels/table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* One node with 12 NVLinks of 20 GB/s each. */
static const hp_nccl_net dgx = {
    .ranks = 8, .per_node = 8, .chip = HP_NCCL_AMPERE, .nvlink = true, .intra_bytes_per_s = 240e9};
/* Two A100s per node, one HDR link: 24 GB/s. */
static const hp_nccl_net pairs = {.ranks = 32,
                                  .per_node = 2,
                                  .chip = HP_NCCL_AMPERE,
                                  .nvlink = true,
                                  .intra_bytes_per_s = 168e9,
                                  .net_bytes_per_s = 24e9};

/* SuperBench's log of nccl-tests, all-reduce on 8 A100-40 behind NVSwitch, microseconds. The tuner's purpose
 * is ranking: its times up to 16 MiB are too low, by up to half. */
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

/* The first size, in powers of two, at which the choice changes. */
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
        if ((c.way == HP_NCCL_TREE) != one_node[i].tree || c.protocol != one_node[i].protocol)
            fail_msg("one node, %.0f bytes: way %d protocol %d", one_node[i].bytes, c.way, c.protocol);
    }
    for (size_t i = 0; i < 4; i++) {
        const hp_nccl_choice c = hp_nccl_choose(HP_NCCL_ALLREDUCE, &pairs, many[i].bytes);
        if ((c.way == HP_NCCL_TREE) != many[i].tree || c.protocol != many[i].protocol)
            fail_msg("16 nodes, %.0f bytes: way %d protocol %d", many[i].bytes, c.way, c.protocol);
    }
}

/* Eight H100s behind NVSwitch, bus bandwidths of nccl-tests: 476-480 GB/s with NVLS. Without it, and for
 * operations that switches do not sum, the ring's bandwidth is at most a link's 370.8. */
static void switches_add_faster_than_rings(void **state) {
    (void)state;
    const hp_nccl_net dgx_h = {.ranks = 8,
                               .per_node = 8,
                               .chip = HP_NCCL_HOPPER,
                               .nvlink = true,
                               .nvswitch = true,
                               .intra_bytes_per_s = 370.8e9};
    const double bytes = 8e9;
    const hp_nccl_choice c = hp_nccl_choose(HP_NCCL_ALLREDUCE, &dgx_h, bytes);
    assert_int_equal(c.way, HP_NCCL_NVLS);
    const double bus = 2 * 7.0 / 8 * bytes / c.seconds;
    if (fabs(bus / 478e9 - 1) > 0.1) fail_msg("%.0f GB/s, measured 476-480", bus * 1e-9);
    hp_nccl_net links = dgx_h;
    links.nvswitch = false;
    const double ring = 2 * 7.0 / 8 * bytes / hp_nccl_choose(HP_NCCL_ALLREDUCE, &links, bytes).seconds;
    assert_true(ring < 370.8e9 && ring > 0.95 * 370.8e9);
    assert_int_equal(hp_nccl_choose(HP_NCCL_HALF, &dgx_h, bytes).way, HP_NCCL_RING);
    assert_int_not_equal(hp_nccl_choose(HP_NCCL_ALLREDUCE, &dgx_h, 1024).way, HP_NCCL_NVLS);
    hp_nccl_net older = dgx_h;
    older.chip = HP_NCCL_AMPERE;
    assert_int_equal(hp_nccl_choose(HP_NCCL_ALLREDUCE, &older, bytes).way, HP_NCCL_RING);
}

/* Between nodes without summing switches, nothing is faster than the traffic that must leave each node: 2
 * (N-1)/N of the data. The tuner counts ranks instead of nodes, which is a sixteenth less. */
static void switches_do_not_widen_the_network(void **state) {
    (void)state;
    hp_nccl_net n = {.ranks = 64,
                     .per_node = 8,
                     .chip = HP_NCCL_HOPPER,
                     .nvlink = true,
                     .nvswitch = true,
                     .intra_bytes_per_s = 370.8e9,
                     .net_bytes_per_s = 8 * 48e9};
    for (n.ranks = 16; n.ranks <= 1024; n.ranks *= 2)
        for (int power = 10; power < 34; power++) {
            const double bytes = ldexp(1, power), nodes = n.ranks / 8.0;
            const double least = 0.93 * 2 * (nodes - 1) / nodes * bytes / n.net_bytes_per_s;
            const hp_nccl_choice c = hp_nccl_choose(HP_NCCL_ALLREDUCE, &n, bytes);
            if (c.seconds < least) fail_msg("%d ranks, %.0f bytes: faster than the NICs", n.ranks, bytes);
            assert_int_not_equal(c.way, HP_NCCL_NVLS);
        }
}

/* Large data moves at the ring's bandwidth: 2 (p-1)/p of it over the slowest link. */
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

/* An all-to-all of S from each of g N ranks: g S (N-1)/N leave a node over its NICs; on one node, (g-1)/g S
 * leave each device. */
static void all_to_alls_take_the_nics(void **state) {
    (void)state;
    const double bytes = 64e9;
    for (int g = 1; g <= 8; g *= 2)
        for (int nodes = 1; nodes <= 64; nodes *= 4) {
            if (g * nodes < 2) continue;
            const hp_nccl_net n = {.ranks = g * nodes,
                                   .per_node = g,
                                   .chip = HP_NCCL_AMPERE,
                                   .nvlink = true,
                                   .intra_bytes_per_s = 220e9,
                                   .net_bytes_per_s = 24e9};
            const hp_nccl_choice c = hp_nccl_choose(HP_NCCL_ALL_TO_ALL, &n, bytes);
            const double want =
                nodes > 1 ? g * bytes * (nodes - 1) / nodes / 24e9 : (g - 1.0) / g * bytes / 220e9;
            if (c.way != HP_NCCL_PAIRS || fabs(c.seconds / want - 1) > 0.01)
                fail_msg("%d x %d: %g s, expected %g", nodes, g, c.seconds, want);
        }
}

/* Summing switches halve the traffic over the NICs: S each way instead of 2 S (p-1)/p. On one node there is
 * none. */
static void switches_that_add_halve_the_traffic(void **state) {
    (void)state;
    const double bytes = 64e9;
    hp_nccl_net n = pairs;
    for (int nodes = 4; nodes <= 256; nodes *= 4) {
        n.ranks = 2 * nodes;
        n.sharp = false;
        const double ring_s = hp_nccl_choose(HP_NCCL_ALLREDUCE, &n, bytes).seconds;
        n.sharp = true;
        const hp_nccl_choice c = hp_nccl_choose(HP_NCCL_ALLREDUCE, &n, bytes);
        assert_int_equal(c.way, HP_NCCL_COLLNET);
        assert_true(fabs(c.seconds / (bytes / (0.9 * 24e9)) - 1) < 0.01);
        assert_true(c.seconds < ring_s);
        assert_int_equal(hp_nccl_choose(HP_NCCL_HALF, &n, bytes).way, HP_NCCL_RING);
    }
    n.ranks = 2;
    assert_int_not_equal(hp_nccl_choose(HP_NCCL_ALLREDUCE, &n, bytes).way, HP_NCCL_COLLNET);
}

static double allreduce_of(const char *device, const char *like) {
    char text[256];
    snprintf(
        text, sizeof text,
        "nodes=2; node=4 x %s, nvlink=300GB/s; nic=4 x 400Gb/s; device=%s, memory=80GB, fp32=19.5TFLOP/s, "
        "bandwidth=2TB/s, like=%s",
        device, device, like);
    hp_arena *arena = hp_arena_new();
    hp_machine m;
    hp_cost_table *t;
    hp_error err = {HP_OK, ""};
    if (hp_machine_load(text, &m, &err) != HP_OK) fail_msg("%s", err.text);
    assert_int_equal(hp_cost_load(arena, NULL, &m, &t, &err), HP_OK);
    const hp_collective_call c = {HP_WIRE_NCCL, HP_ALGORITHM_LIBRARY, HP_COLLECTIVE_ALLREDUCE, 8, 4};
    const double seconds = hp_cost_collective(t, &m, &c, 262144).seconds;
    hp_arena_free(arena);
    return seconds;
}

/* Which generation a GPU of no data sheet is of goes by what it is like, not by how its name begins. */
static void names_are_not_generations(void **state) {
    (void)state;
    static const char *const names[] = {"bolt", "hare", "mule"};
    const double ampere_s = allreduce_of("zebu", "a100-40"), hopper_s = allreduce_of("zebu", "h100");
    assert_true(hopper_s < ampere_s);
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(allreduce_of(names[i], "a100-40") / ampere_s - 1) < 1e-9);
        assert_true(fabs(allreduce_of(names[i], "h100") / hopper_s - 1) < 1e-9);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_to_alls_take_the_nics),
        cmocka_unit_test(switches_that_add_halve_the_traffic),
        cmocka_unit_test(eight_gpus_take_what_was_measured),
        cmocka_unit_test(ways_change_where_nccl_changes_them),
        cmocka_unit_test(switches_add_faster_than_rings),
        cmocka_unit_test(switches_do_not_widen_the_network),
        cmocka_unit_test(large_data_take_the_links_time),
        cmocka_unit_test(nothing_comes_for_free),
        cmocka_unit_test(names_are_not_generations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
