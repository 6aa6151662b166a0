/* test_network.c - concurrent messages share NICs, and links between leaf switches. Times are those of the
 * narrowest shared place, because max-min shares of equal messages are equal there. */
#include "machines/network.h"
#include "sim/engine/sim.h"
#include "tests/support/sim/messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { ALONE_NS = 1000000, RANKS = 32 };

static double one_ms(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)self, (void)p, (void)g, (void)rank, (void)task;
    return 1e-9 * ALONE_NS;
}

static const double LATENCY = 0.25; /* share of a lone message's time that does not depend on bytes */

static double a_quarter(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    return LATENCY * one_ms(self, p, g, rank, task);
}

/* Duration of all messages together, each on a channel of its own, in units of one alone. */
static double times_alone(const hp_machine *m, const message *list, int n, hp_backend by, bool latency) {
    hp_arena *arena = hp_arena_new();
    const hp_sim_costs costs = {.seconds = one_ms, .latency = latency ? a_quarter : NULL};
    const hp_sim_options o = {.straggler_rank = -1};
    hp_sim_result r;
    hp_error err = {HP_OK, ""};
    message *own = HP_NEW(arena, message, n);
    for (int i = 0; i < n; i++) own[i] = (message){list[i].from, list[i].to, i, 1};
    const hp_program *p = message_program(arena, RANKS, own, n, by);
    if (hp_sim_run(arena, p, NULL, m, &costs, &o, &r, &err) != HP_OK) fail_msg("%s", err.text);
    const double times = (double)r.makespan_ns / ALONE_NS;
    hp_arena_free(arena);
    return times;
}

static void takes(const hp_machine *m, const message *list, int n, hp_backend by, double want) {
    /* the latency of a message waits for no link */
    const double late = times_alone(m, list, n, by, true), late_want = LATENCY + (1 - LATENCY) * want;
    if (late < late_want * (1 - 1e-4) || late > late_want * (1 + 1e-4))
        fail_msg("%s: with latency %g, not %g times alone", m->name, late, late_want);
    const double have = times_alone(m, list, n, by, false);
    if (have < want * (1 - 1e-4) || have > want * (1 + 1e-4))
        fail_msg("%d messages take %g times as long as one, expected %g", n, have, want);
}

static hp_machine machine(int devices, int nics, hp_nic_use use) {
    return (hp_machine){.name = "test",
                        .nodes = RANKS / devices,
                        .devices_per_node = devices,
                        .nics_per_node = nics,
                        .nic_use = use,
                        .intra = {"nvlink", 1e-6, 1e9},
                        .inter = {"net", 1e-5, 1e8}};
}

/* With K NICs and G devices, device i sends through number i K / G, or shares it. */
static void a_device_sends_through_the_nics_near_to_it(void **state) {
    (void)state;
    static const struct {
        int devices, nics;
        double near, shared; /* two messages from device 0 to two nodes */
    } cases[] = {{8, 8, 2, 1}, {8, 4, 2, 1}, {4, 8, 1, 1}, {8, 1, 2, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int d = cases[i].devices;
        const hp_machine near = machine(d, cases[i].nics, HP_NICS_NEAR),
                         shared = machine(d, cases[i].nics, HP_NICS_SHARED);
        const message two[] = {{0, d}, {0, 2 * d}};
        takes(&near, two, 2, HP_BACKEND_NCCL, cases[i].near);
        takes(&shared, two, 2, HP_BACKEND_NCCL, cases[i].shared);
        message all[8]; /* every device to the next node's: G messages over K NICs */
        for (int k = 0; k < d; k++) all[k] = (message){k, d + k};
        const double each = d > cases[i].nics ? (double)d / cases[i].nics : 1;
        takes(&near, all, d, HP_BACKEND_NCCL, each);
        takes(&shared, all, d, HP_BACKEND_NCCL, each);
    }
}

/* From n nodes at one leaf switch of four, with half as many uplinks: n messages over at least two links.
 * Within the switch, nothing is shared. */
static void messages_share_the_links_between_leaf_switches(void **state) {
    (void)state;
    hp_machine m = machine(1, 1, HP_NICS_NEAR);
    m.taper = 2;
    m.leaf = 4;
    for (int n = 1; n <= 4; n++) {
        message out[4], in[4], inside[4];
        for (int k = 0; k < n; k++) {
            out[k] = (message){k, 4 * (k + 1)}; /* to as many other leaf switches */
            in[k] = (message){4 * (k + 1), k};
            inside[k] = (message){k, (k + 1) % 4};
        }
        takes(&m, out, n, HP_BACKEND_NCCL, n > 2 ? n / 2.0 : 1);
        takes(&m, in, n, HP_BACKEND_NCCL, n > 2 ? n / 2.0 : 1);
        takes(&m, inside, n, HP_BACKEND_NCCL, 1);
    }
    m.taper = 1;
    const message four[] = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
    takes(&m, four, 4, HP_BACKEND_NCCL, 1);
}

/* Four nodes of four devices on four rails, whose leaf switches have one uplink per four downlinks. To the
 * same rail, nothing is shared. To another one, each leaf switch's four messages use its one uplink, unless
 * NCCL hands them over within the nodes. */
static void another_rail_is_reached_over_the_spine_or_nvlink(void **state) {
    (void)state;
    hp_machine m = machine(4, 4, HP_NICS_RAILS);
    m.taper = 4;
    m.leaf = 4;
    message same[16], other[16];
    for (int k = 0; k < 16; k++) {
        const int node = k / 4, rail = k % 4, to = 4 * ((node + 1) % 4);
        same[k] = (message){k, to + rail};
        other[k] = (message){k, to + (rail + 1) % 4};
    }
    takes(&m, same, 16, HP_BACKEND_NCCL, 1);
    takes(&m, same, 16, HP_BACKEND_MPI, 1);
    takes(&m, other, 16, HP_BACKEND_NCCL, 1);
    takes(&m, other, 16, HP_BACKEND_MPI, 4);
    snprintf(m.intra.name, sizeof m.intra.name, "pcie");
    takes(&m, other, 16, HP_BACKEND_NCCL, 4);
    m.nic_use = HP_NICS_NEAR; /* all four NICs of a node at one leaf switch: nothing goes up */
    takes(&m, other, 16, HP_BACKEND_MPI, 1);
}

/* All pairs at once, on N nodes of g devices with k NICs: g g (N-1) messages leave a node over them. */
static void all_pairs_take_the_nics(void **state) {
    (void)state;
    static message all[RANKS * RANKS];
    for (int g = 1; g <= 8; g *= 2)
        for (int k = 1; k <= g; k *= 2) {
            hp_machine m = machine(g, k, HP_NICS_NEAR);
            int n = 0;
            for (int from = 0; from < RANKS; from++)
                for (int to = 0; to < RANKS; to++)
                    if (from / g != to / g) all[n++] = (message){from, to};
            const double each = (double)g * g * (RANKS / g - 1) / k; /* NOLINT: g divides it */
            takes(&m, all, n, HP_BACKEND_NCCL, each);
            m.nic_use = HP_NICS_SHARED;
            takes(&m, all, n, HP_BACKEND_NCCL, each);
        }
}

/* A switch with R ports and a taper of A:B has R A/(A + B) downlinks: Frontera's with 40 HDR ports, 22 and
 * 18. */
static void leaf_switches_have_their_ports(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int leaf;
    } cases[] = {{"nodes=99; node=1 x h100; nic=1 x ib-hdr; fat-tree 22:18", 22},
                 {"nodes=99; node=1 x h100; nic=1 x ib-edr; fat-tree 2:1", 24},
                 {"nodes=99; node=8 x h100; nic=8 x ib-ndr; fat-tree 3:1", 6},
                 {"nodes=99; node=8 x h100; nic=8 x ib-ndr, rails; fat-tree 3:1", 48},
                 {"nodes=99; node=8 x h100; nic=8 x ib-ndr; fat-tree 3:1, leaf=5", 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hp_machine m;
        hp_error err = {HP_OK, ""};
        if (hp_machine_parse(cases[i].text, "test", &m, &err) != HP_OK) fail_msg("%s", err.text);
        assert_int_equal(m.leaf, cases[i].leaf);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_sends_through_the_nics_near_to_it),
        cmocka_unit_test(messages_share_the_links_between_leaf_switches),
        cmocka_unit_test(another_rail_is_reached_over_the_spine_or_nvlink),
        cmocka_unit_test(all_pairs_take_the_nics),
        cmocka_unit_test(leaf_switches_have_their_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
