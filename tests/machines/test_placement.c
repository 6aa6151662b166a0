/* test_placement.c - where ranks run, counted rank by rank. */
#include "machines/placement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_RANKS = 256 };

static int ranks_of(const hp_placement *p) {
    return p->roles * p->replicas;
}

/* Every small placement: roles, clients, replicas, devices per node, nodes. */
static void for_each_placement(void (*check)(const hp_placement *p)) {
    for (int roles = 1; roles <= 6; roles++)
        for (int clients = 1; clients <= 3; clients++)
            for (int blocks = 1; blocks <= 5; blocks++)
                for (int here = 1; here <= 6; here++)
                    for (int nodes = 1; nodes <= 9; nodes += 2) {
                        const hp_placement p = {roles, blocks * clients, clients, nodes, here, NULL};
                        check(&p);
                    }
}

/* Two ranks that fit on the machine share a device exactly if they have one role and are clients of each
 * other. */
static void check_devices(const hp_placement *p) {
    const int devices = p->nodes * p->devices_per_node;
    for (int rank = 0; rank < ranks_of(p); rank++) {
        const int role = rank % p->roles, block = rank / p->roles / p->clients;
        assert_in_range(hp_placement_device(p, rank), 0, devices - 1);
        assert_int_equal(hp_placement_node(p, rank), hp_placement_device(p, rank) / p->devices_per_node);
        for (int other = 0; other < rank && ranks_of(p) / p->clients <= devices; other++) {
            const bool clients = other % p->roles == role && other / p->roles / p->clients == block;
            assert_int_equal(hp_placement_device(p, other) == hp_placement_device(p, rank), clients);
        }
    }
}

static void clients_of_a_role_share_its_device(void **state) {
    (void)state;
    for_each_placement(check_devices);
}

static void ranks_per_device(const hp_placement *p, int count[MOST_RANKS]) {
    memset(count, 0, sizeof(int) * MOST_RANKS);
    for (int rank = 0; rank < ranks_of(p); rank++) count[hp_placement_device(p, rank)]++;
}

static void check_shared(const hp_placement *p) {
    int count[MOST_RANKS];
    bool shared = false;
    ranks_per_device(p, count);
    for (int d = 0; d < p->nodes * p->devices_per_node; d++) shared = shared || count[d] > 1;
    assert_int_equal(hp_placement_shares_devices(p), shared);
}

static void a_device_is_shared_if_two_ranks_count_it(void **state) {
    (void)state;
    for_each_placement(check_shared);
}

/* A process finds its GPU by its number among the node's ranks. That equals the one by its rank in the
 * program if nodes hold whole blocks of clients, or blocks whole nodes of ranks. */
static void check_local(const hp_placement *p) {
    const int places = hp_placement_places(p), per_node = p->devices_per_node * p->clients;
    const bool whole =
        p->devices_per_node % p->roles == 0 || (p->clients == 1 && p->roles % p->devices_per_node == 0);
    if (!whole || places > p->nodes * p->devices_per_node) return;
    const hp_placement node = {p->roles, p->replicas, p->clients, 1, p->devices_per_node, NULL};
    for (int rank = 0; rank < ranks_of(p); rank++) {
        assert_int_equal(hp_placement_node(p, rank), rank / per_node);
        assert_int_equal(hp_placement_device(&node, rank % per_node),
                         hp_placement_device(p, rank) % p->devices_per_node);
    }
}

static void a_node_places_its_ranks_as_the_machine_does(void **state) {
    (void)state;
    for_each_placement(check_local);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_of_a_role_share_its_device),
        cmocka_unit_test(a_device_is_shared_if_two_ranks_count_it),
        cmocka_unit_test(a_node_places_its_ranks_as_the_machine_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
