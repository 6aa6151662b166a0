/* test_bind.c - shares of cores. Laws, over all small nodes: shares are disjoint, have a core for every
 * thread, and lie in one NUMA node if that is possible within their part of the cores. */
#include "exec/run/run_bind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MOST_CORES = 24 };

static int most_of_one_node(const int32_t *numa, int from, int to) {
    int most = 0;
    for (int i = from; i < to; i++) {
        int n = 0;
        for (int k = from; k < to; k++) n += numa[k] == numa[i];
        if (n > most) most = n;
    }
    return most;
}

static void check(const int32_t *numa, int cores, int ranks, int threads) {
    bool taken[MOST_CORES] = {false};
    for (int r = 0; r < ranks; r++) {
        const hp_share s = hp_bind_share(numa, cores, r, ranks, threads);
        assert_true(s.count >= threads && s.first >= 0 && s.first + s.count <= cores);
        for (int i = s.first; i < s.first + s.count; i++) {
            assert_false(taken[i]);
            taken[i] = true;
        }
        const int from = r * cores / ranks, to = (r + 1) * cores / ranks;
        if (most_of_one_node(numa, from, to) >= threads)
            assert_int_equal(most_of_one_node(numa, s.first, s.first + s.count), s.count);
    }
}

static void shares_are_disjoint_large_enough_and_near(void **state) {
    (void)state;
    for (int cores = 1; cores <= MOST_CORES; cores++)
        for (int per_node = 1; per_node <= cores; per_node++) {
            int32_t numa[MOST_CORES];
            for (int i = 0; i < cores; i++) numa[i] = 3 * (i / per_node); /* NUMA numbers may have gaps */
            for (int threads = 1; threads <= cores; threads++)
                for (int ranks = 1; ranks * threads <= cores; ranks++) check(numa, cores, ranks, threads);
        }
}

/* Ranks that divide the cores of a NUMA node use all of them. */
static void no_core_is_left_idle_where_ranks_divide_the_nodes(void **state) {
    (void)state;
    const int32_t numa[8] = {0, 0, 0, 0, 1, 1, 1, 1};
    for (int ranks = 2; ranks <= 8; ranks *= 2)
        for (int r = 0; r < ranks; r++) {
            const hp_share s = hp_bind_share(numa, 8, r, ranks, 1);
            assert_int_equal(s.first, r * 8 / ranks);
            assert_int_equal(s.count, 8 / ranks);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_disjoint_large_enough_and_near),
        cmocka_unit_test(no_core_is_left_idle_where_ranks_divide_the_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
