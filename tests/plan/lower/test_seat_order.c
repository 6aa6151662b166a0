/* test_seat_order.c - seats are a permutation, dealt in turn or packed by blocks. */
#include "plan/lower/seat_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_PLACES = 64 };

static int seats_of_node(int places, int per_node, int node) {
    const int left = places - node * per_node;
    return left < per_node ? left : per_node;
}

static void assert_permutation(const int32_t *seat, int n) {
    bool taken[MOST_PLACES] = {false};
    for (int k = 0; k < n; k++) {
        assert_in_range(seat[k], 0, n - 1);
        assert_false(taken[seat[k]]);
        taken[seat[k]] = true;
    }
}

/* No node is two turns ahead of another that still has a seat. */
static void cyclic_deals_to_the_nodes_in_turn(void **state) {
    (void)state;
    for (int per_node = 1; per_node <= 7; per_node++)
        for (int places = 1; places <= 40; places++) {
            int32_t seat[MOST_PLACES], got[MOST_PLACES] = {0};
            const int nodes = (places + per_node - 1) / per_node;
            hp_seats_cyclic(places, per_node, seat);
            assert_permutation(seat, places);
            for (int k = 0; k < places; k++) {
                const int node = seat[k] / per_node;
                for (int other = 0; other < nodes; other++)
                    assert_true(got[node] <= got[other] ||
                                got[other] == seats_of_node(places, per_node, other));
                got[node]++;
            }
        }
}

/* Blocks that divide a node stay whole, in whatever order they come. */
static void packing_keeps_blocks_whole_that_divide_a_node(void **state) {
    (void)state;
    static const int32_t size[] = {1, 4, 2, 4, 1, 2, 4, 2, 1, 1, 4, 2};
    int32_t member[28], seat[28];
    for (int k = 0; k < 28; k++) member[k] = 27 - k;
    hp_seats_pack(4, member, size, 12, seat);
    assert_permutation(seat, 28);
    for (int b = 0, at = 0; b < 12; at += size[b++])
        for (int k = 1; k < size[b]; k++) assert_int_equal(seat[member[at + k]] / 4, seat[member[at]] / 4);
}

static void blocks_that_fit_nowhere_are_split_and_nothing_is_lost(void **state) {
    (void)state;
    for (int per_node = 1; per_node <= 6; per_node++) {
        static const int32_t size[] = {5, 3, 3, 7, 1};
        int32_t member[19], seat[19];
        for (int k = 0; k < 19; k++) member[k] = k;
        hp_seats_pack(per_node, member, size, 5, seat);
        assert_permutation(seat, 19);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cyclic_deals_to_the_nodes_in_turn),
        cmocka_unit_test(packing_keeps_blocks_whole_that_divide_a_node),
        cmocka_unit_test(blocks_that_fit_nowhere_are_split_and_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
