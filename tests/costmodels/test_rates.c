/* test_rates.c - a table measured over links of one rate predicts machines with links of another. */
#include "costmodels/link_fit.h"
#include "costmodels/models.h"
#include "tests/support/sim/made_up_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Nodes with one core, whose links are the made-up machine's. */
static hp_machine cluster(int nodes, double bytes_per_s) {
    hp_machine m = local_like(1);
    m.nodes = nodes;
    m.inter.bytes_per_s = bytes_per_s;
    return m;
}

static const char *const STRATEGIES[] = {"dp=1", "dp=2", "stages=2,micro=4", "sp=2x1", "sp=1x2,micro=2"};
enum { N_STRATEGIES = sizeof STRATEGIES / sizeof *STRATEGIES };

static void a_links_figures_come_back(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    for (double rate = 5e6; rate < 1e9; rate *= 5) {
        const hp_machine m = cluster(2, rate);
        const hp_cost_table *t = calibrate(arena, &m, HP_MODE_TRAIN, STRATEGIES, N_STRATEGIES);
        const hp_row *row = hp_rows_find(t, HP_ROW_LINK, m.inter.name, "");
        assert_non_null(row);
        assert_true(near(row->y[HP_LINK_BANDWIDTH], 0.9, 0.01));
        assert_true(near(row->y[HP_LINK_LATENCY] * m.inter.latency_s, 2e-5, 0.05));
        assert_true(near(hp_link_rate(t, &m.inter), rate, 1e-9));
    }
    const hp_machine one = local_like(2);
    const hp_cost_table *t = calibrate(arena, &one, HP_MODE_TRAIN, STRATEGIES, N_STRATEGIES);
    assert_null(hp_rows_find(t, HP_ROW_LINK, one.inter.name, ""));
    hp_arena_free(arena);
}

/* In both directions: to slower and to faster links. */
static void another_rate_is_predicted(void **state) {
    (void)state;
    static const double RATE[] = {6.25e6, 50e6};
    hp_arena *arena = hp_arena_new();
    for (int k = 0; k < 2; k++) {
        const hp_machine there = cluster(2, RATE[k]), here = cluster(2, RATE[1 - k]);
        hp_cost_table *t = calibrate(arena, &there, HP_MODE_TRAIN, STRATEGIES, N_STRATEGIES), *shipped;
        assert_int_equal(hp_rows_parse(arena, hp_shipped_table(), "", &shipped, NULL), HP_OK);
        t->base = shipped;
        for (int i = 1; i < N_STRATEGIES; i++) {
            const hp_plan plan = make_plan(arena, &here, HP_MODE_TRAIN, STRATEGIES[i], 4);
            const double truth = execute(arena, &plan, scratch_path("here.db")),
                         said = predict(arena, t, &plan);
            if (!near(said, truth, 0.05))
                fail_msg("%s, measured at %g, at %g bytes/s: %g s, truly %g", STRATEGIES[i], RATE[k],
                         RATE[1 - k], said, truth);
        }
    }
    hp_arena_free(arena);
}

static void messages_are_the_line_of_the_link(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_machine there = cluster(2, 50e6);
    const hp_cost_table *t = calibrate(arena, &there, HP_MODE_TRAIN, STRATEGIES, N_STRATEGIES);
    for (double rate = 5e6; rate < 1e9; rate *= 3) {
        const hp_machine m = cluster(2, rate);
        for (double bytes = 1e4; bytes < 1e6; bytes *= 2)
            assert_true(near(hp_cost_p2p(t, &m, HP_WIRE_ANY, false, bytes).seconds,
                             2e-5 + bytes / (0.9 * rate), 0.05));
    }
    hp_arena_free(arena);
}

/* A link with negligible latency. */
static void nothing_to_send_takes_no_time_at_any_rate(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_cost_table *t = hp_rows_new(arena, "m", "d");
    hp_machine m = cluster(2, 25e6);
    double x[3] = {0, 1, 2}, y[3] = {0, 1, 50e6}, bytes[2] = {1000, 2000}, seconds[2] = {2e-5, 4e-5};
    hp_rows_add(t, &(hp_row){.kind = HP_ROW_LINK, .class = m.inter.name, .key = "", .n = 3, .x = x, .y = y});
    hp_rows_add(
        t, &(hp_row){.kind = HP_ROW_P2P, .class = m.inter.name, .key = "", .n = 2, .x = bytes, .y = seconds});
    hp_rows_sort(t);
    assert_true(near(1 + hp_cost_p2p(t, &m, HP_WIRE_ANY, false, 0).seconds, 1, 1e-12));
    assert_true(near(hp_cost_p2p(t, &m, HP_WIRE_ANY, false, 1000).seconds, 4e-5, 1e-9));
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_links_figures_come_back),
        cmocka_unit_test(messages_are_the_line_of_the_link),
        cmocka_unit_test(another_rate_is_predicted),
        cmocka_unit_test(nothing_to_send_takes_no_time_at_any_rate),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
