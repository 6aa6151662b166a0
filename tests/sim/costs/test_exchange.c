/* test_exchange.c - parts of a layer that exchange their parts of a tensor: as messages, or, if a framework
 * has a communicator for them, in half the time of an all-reduce of all parts; within a node and across
 * nodes. */
#include "sim/costs/costs.h"
#include "tests/support/sim/frameworks.h"
#include "tests/support/sim/messages.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { MOST = 32 };

/* One exchange: each of n ranks sends each other one this many elements, all at once. */
static hp_program *exchange_among(hp_arena *arena, int n, int64_t count) {
    message *m = HP_NEW(arena, message, n * n);
    int n_message = 0;
    for (int d = 1; d < n; d++)
        for (int k = 0; k < n; k++) m[n_message++] = (message){k, (k + d) % n, HP_CHANNEL_WITHIN, count};
    return message_program(arena, n, m, n_message, HP_BACKEND_NCCL);
}

static double seconds_of(hp_arena *arena, const hp_machine *m, const hp_cost_table *t, const char *framework,
                         int n, int64_t count) {
    const hp_framework *f = framework_named(framework);
    hp_error err = {HP_OK, ""};
    const hp_sim_options o = {.straggler_rank = -1, .fold = true};
    hp_sim_result r;
    const hp_program *p = exchange_among(arena, n, count);
    hp_cost_cache *cache = hp_cost_cache_new(arena, t, m, f);
    const hp_sim_costs costs = hp_costs_of_program(arena, cache, p, NULL);
    if (hp_sim_run(arena, p, NULL, m, &costs, &o, &r, &err) != HP_OK) fail_msg("%s", err.text);
    return 1e-9 * (double)r.makespan_ns;
}

static double sum_seconds(const hp_cost_table *t, const hp_machine *m, int n, double bytes) {
    const hp_collective_call c = {HP_WIRE_NCCL, HP_ALGORITHM_LIBRARY, HP_COLLECTIVE_ALLREDUCE, n,
                                  n < m->devices_per_node ? n : m->devices_per_node};
    return hp_cost_collective(t, m, &c, bytes).seconds;
}

/* For any number of NICs per node: the all-reduce is priced with the existing ones. */
static void an_exchange_takes_half_an_all_reduce(void **state) {
    (void)state;
    static const char *const machines[] = {"nodes=4; node=8 x a100-80, nvswitch; nic=8 x 24GB/s, ib-hdr",
                                           "nodes=4; node=8 x a100-80, nvswitch; nic=1 x 24GB/s, ib-hdr",
                                           "nodes=16; node=2 x a100-40; nic=1 x 24GB/s, ib-hdr"};
    for (size_t k = 0; k < sizeof machines / sizeof *machines; k++) {
        hp_arena *arena = hp_arena_new();
        hp_machine m;
        hp_cost_table *t;
        hp_error err;
        assert_int_equal(hp_machine_load(machines[k], &m, &err), HP_OK);
        assert_int_equal(hp_cost_load(arena, NULL, &m, &t, &err), HP_OK);
        for (int n = 2; n <= MOST; n *= 2)
            for (int64_t count = 1 << 10; count <= 1 << 20; count *= 32) {
                const double want = sum_seconds(t, &m, n, 4.0 * n * (double)count) / 2,
                             have = seconds_of(arena, &m, t, "megatron-lm", n, count);
                if (fabs(have / want - 1) > 1e-3)
                    fail_msg("%s, %d parts of %lld: %g s, half an all-reduce takes %g", machines[k], n,
                             (long long)count, have, want);
            }
        hp_arena_free(arena);
    }
}

/* Two nodes of eight: each sends the other's eight ranks its eighth parts, at least (8/16) S through each
 * NIC; a ring sends S/8. Without a framework, messages are priced as messages. */
static void messages_cross_as_often_as_there_are_readers(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_machine m;
    hp_cost_table *t;
    hp_error err;
    const int64_t count = 1 << 20;
    assert_int_equal(hp_machine_load("dgx-a100", &m, &err), HP_OK);
    assert_int_equal(hp_cost_load(arena, NULL, &m, &t, &err), HP_OK);
    const double whole = 4.0 * 16 * (double)count, messages = seconds_of(arena, &m, t, "hplan", 16, count),
                 pytorch = seconds_of(arena, &m, t, "pytorch-1.13", 16, count);
    assert_true(messages >= whole / 2 / m.inter.bytes_per_s && pytorch >= whole / 2 / m.inter.bytes_per_s);
    assert_true(seconds_of(arena, &m, t, "megatron-lm", 16, count) < messages / 2);
    hp_arena_free(arena);
}

int main(void) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(an_exchange_takes_half_an_all_reduce),
                                              cmocka_unit_test(messages_cross_as_often_as_there_are_readers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
