/* test_folding.c - with the costs of real machines, a strategy has the same figures folded or not. */
#include "sim/search/evaluate.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/random_net.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static hp_machine shipped_machine(const char *name, dice *d) {
    hp_machine m;
    hp_error err = {HP_OK, ""};
    if (hp_machine_load(name, &m, &err) != HP_OK) fail_msg("%s", err.text);
    m.nodes = roll(d, 1, 12);
    m.devices_per_node = roll(d, 1, 8);
    m.nics_per_node = roll(d, 1, 2);
    return m;
}

static hp_evaluation evaluate(hp_arena *arena, const hp_eval_setup *setup, const hp_strategy *s) {
    hp_evaluation e;
    hp_error err = {HP_OK, ""};
    if (hp_evaluate(hp_eval_new(arena, setup), arena, s, HP_EVAL_PLACED, &e, &err) != HP_OK)
        fail_msg("%s", err.text);
    return e;
}

static void check(const hp_machine *m, const hp_evaluation *a, const hp_evaluation *b) {
    const hp_candidate *x = &a->figures, *y = &b->figures;
    if (fabs(x->step_s - y->step_s) > 1e-12 || fabs(x->step_low_s / y->step_low_s - 1) > 1e-6 ||
        fabs(x->step_high_s / y->step_high_s - 1) > 1e-6) /* waits are means over ranks, summed in another
                                                           * order */
        fail_msg("%s on %d x %d %s: folded %.9f s (%.9f-%.9f), all %.9f s (%.9f-%.9f)", x->strategy, m->nodes,
                 m->devices_per_node, m->name, x->step_s, x->step_low_s, x->step_high_s, y->step_s,
                 y->step_low_s, y->step_high_s);
    assert_true(fabs(x->bubble - y->bubble) < 1e-9 && fabs(x->exposed_comm - y->exposed_comm) < 1e-9);
    assert_int_equal(a->reject.code, b->reject.code);
}

static void figures_do_not_depend_on_folding(void **state) {
    (void)state;
    static const char *const machines[] = {"thesis-a100", "dgx-h200", "pitzer", "thetagpu"};
    int compared = 0;
    for (uint64_t seed = 1; seed <= law_cases(30); seed++) {
        dice d = {seed, 9500};
        hp_arena *arena = hp_arena_new();
        const int groups = roll(&d, 2, 24);
        hp_graph *g = random_net(arena, seed, roll(&d, 4, 9));
        hp_strategy s = random_strategy_of(&d, g, groups, 32, DRAW_ALL);
        g = random_precision(&d, arena, g, &s);
        const hp_machine m = shipped_machine(machines[seed % 4], &d);
        hp_error err = {HP_OK, ""};
        hp_cost_table *t = NULL;
        if (hp_cost_load(arena, NULL, &m, &t, &err) != HP_OK) fail_msg("%s", err.text);
        hp_eval_setup setup = {.jitter_cv = -1,
                               .graph = g,
                               .machine = &m,
                               .table = t,
                               .mode = HP_MODE_TRAIN,
                               .dtype = HP_F32,
                               .batch = hp_strategy_batch(&s, groups),
                               .straggler_rank = roll(&d, -1, 3),
                               .straggler_factor = 1.7};
        const hp_evaluation folded = evaluate(arena, &setup, &s);
        setup.no_fold = true;
        const hp_evaluation all = evaluate(arena, &setup, &s);
        check(&m, &folded, &all);
        compared += all.figures.step_s > 0;
        hp_arena_free(arena);
    }
    assert_true((uint64_t)compared > law_cases(30) / 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_do_not_depend_on_folding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
