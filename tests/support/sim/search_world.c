/* search_world.c - a network, a machine and its costs, and a search over all strategies for them. */
#include "tests/support/sim/search_world.h"

#include "costmodels/cost_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

world make_world(const char *machine, const char *net, int image, int64_t batch) {
    world w = {.arena = hp_arena_new()};
    hp_error err = {HP_OK, ""};
    if (hp_machine_load(machine, &w.m, &err) != HP_OK ||
        hp_cost_load(w.arena, NULL, &w.m, &w.t, &err) != HP_OK ||
        hp_net_build(w.arena, net, image, image, 10, &w.g, &err) != HP_OK)
        fail_msg("%s", err.text);
    w.setup = (hp_eval_setup){.graph = w.g,
                              .table = w.t,
                              .mode = HP_MODE_TRAIN,
                              .dtype = HP_F32,
                              .batch = batch,
                              .straggler_rank = -1};
    return w;
}

void world_use_rows(world *w, const char *rows) {
    hp_error err = {HP_OK, ""};
    const char *text = hp_arena_printf(w->arena, "hplan-cost 2\nmachine m\ndate d\n%s", rows);
    hp_cost_table *t = NULL;
    if (hp_rows_parse(w->arena, text, "rows", &t, &err) != HP_OK) fail_msg("%s", err.text);
    t->base = w->t;
    w->setup.table = t;
}

hp_evaluation evaluate_under(world *w, const hp_framework *f, const char *strategy) {
    hp_eval_setup setup = w->setup;
    hp_strategy s;
    hp_evaluation v;
    hp_error err;
    setup.framework = f;
    setup.machine = &w->m;
    setup.jitter_cv = -1;
    setup.memory_limit = INT64_MAX / 2;
    if (hp_strategy_parse(strategy, &s, &err) != HP_OK) fail_msg("%s", err.text);
    hp_eval *e = hp_eval_new(w->arena, &setup);
    if (hp_evaluate(e, w->arena, &s, HP_EVAL_PLACED, &v, &err) != HP_OK || v.reject.code)
        fail_msg("%s is not evaluated: %s", strategy, v.reject.code ? v.reject.limit : err.text);
    return v;
}

hp_space space_of(const world *w, int devices) {
    return (hp_space){.graph = w->g,
                      .mode = w->setup.mode,
                      .batch = w->setup.batch,
                      .n_devices = devices,
                      .most_clients = w->m.share_cpu ? 1 : 2};
}

hp_search_result search(world *w, int devices, int top) {
    hp_error err = {HP_OK, ""};
    hp_search_result r;
    w->setup.machine = &w->m;
    const hp_space space = space_of(w, devices);
    const hp_search_options o = {.top = top, .budget = INT64_MAX};
    if (hp_search(w->arena, &w->setup, &space, &o, &r, &err) != HP_OK) fail_msg("%s", err.text);
    return r;
}
