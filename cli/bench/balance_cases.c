/* balance_cases.c - derives chains from networks. */
#include "cli/bench/balance_cases.h"

#include "costmodels/table.h"
#include "base/units.h"
#include "networks/graph/graph.h"
#include "machines/machine.h"
#include "plan/program/work.h"
#include "plan/tiles/tile.h"
#include "sim/costs/costs.h"

#include <string.h>

static const char *const machines[HP_BALANCE_CLASSES] = {"nodes=1; node=1 x a100-40",
                                                         "nodes=1; node=1 x v100-16", "nodes=1; node=1 x t4"};
enum { IMAGE = 224, CHAIN_WIDTH = 256, CHAIN_SIDE = 28 };

static bool begins_unit(const hp_layer *l) {
    return l->op == HP_CONV || l->op == HP_LINEAR;
}

/* Seconds of each unit on a machine; returns the number of units. */
static hp_status units_on(hp_arena *arena, const hp_graph *g, const char *machine, double *seconds, int *n,
                          hp_error *err) {
    hp_machine m;
    hp_cost_table *t = NULL;
    HP_TRY(hp_machine_load(machine, &m, err));
    HP_TRY(hp_cost_load(arena, NULL, &m, &t, err));
    hp_cost_cache *costs = hp_cost_cache_new(arena, t, &m, NULL);
    *n = 0;
    for (int l = 1; l < g->n_layer; l++) {
        const hp_box out = hp_box_whole(g, g->layer[l].out, 1);
        const hp_work_case c = hp_work_case_at(g, l, HP_TASK_FWD, &out);
        double share;
        if (begins_unit(&g->layer[l]) && *n < HP_BALANCE_UNITS) ++*n;
        if (*n > 0) seconds[*n - 1] += hp_costs_case(costs, g, HP_F32, &c, &share).seconds;
    }
    return HP_OK;
}

/* Parses "chain:N": N convolutions of 3 x 3 with 256 channels. */
static hp_status chain_units(const char *net, int *n, hp_error *err) {
    int64_t units;
    HP_TRY(hp_parse_int(net + strlen("chain:"), "the length of a chain", 1, HP_BALANCE_UNITS, &units, err));
    *n = (int)units;
    return HP_OK;
}

static hp_status chain_seconds(const char *machine, int n, double *seconds, hp_error *err) {
    hp_machine m;
    HP_TRY(hp_machine_load(machine, &m, err));
    for (int u = 0; u < n; u++)
        seconds[u] = 2.0 * 9 * CHAIN_WIDTH * CHAIN_WIDTH * CHAIN_SIDE * CHAIN_SIDE / m.device.flops_per_s;
    return HP_OK;
}

static void share_places(hp_chain *c, int places, int classes) {
    c->n_class = classes;
    c->places[0] = places - places / 2;
    c->places[1] = classes == 2 ? places / 2 : places / 2 - places / 4;
    c->places[2] = classes == 2 ? 0 : places / 4;
}

hp_status balance_case_make(hp_arena *arena, const char *net, int places, int classes, balance_case *c,
                            hp_error *err) {
    hp_graph *g = NULL;
    const bool chain = strncmp(net, "chain:", strlen("chain:")) == 0;
    *c = (balance_case){.net = net};
    share_places(&c->chain, places, classes);
    if (chain) HP_TRY(chain_units(net, &c->chain.n_unit, err));
    if (!chain) HP_TRY(hp_net_build(arena, net, IMAGE, IMAGE, hp_net_default_classes(net), &g, err));
    for (int k = 0; k < classes && k < HP_BALANCE_CLASSES; k++) {
        double *seconds = HP_NEW(arena, double, HP_BALANCE_UNITS);
        HP_TRY(chain ? chain_seconds(machines[k], c->chain.n_unit, seconds, err)
                     : units_on(arena, g, machines[k], seconds, &c->chain.n_unit, err));
        c->chain.seconds[k] = seconds;
    }
    return HP_OK;
}
