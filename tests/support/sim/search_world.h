/* search_world.h - a network, a machine and its costs, and a search over all strategies for them. */
#ifndef HP_TESTS_SEARCH_WORLD_H
#define HP_TESTS_SEARCH_WORLD_H

#include "sim/search/search.h"
#include "tests/support/sim/frameworks.h"

typedef struct world {
    hp_arena *arena;
    hp_graph *g;
    hp_machine m;
    hp_cost_table *t;
    hp_eval_setup setup;
} world;

world make_world(const char *machine, const char *net, int image, int64_t batch);
/* Adds rows of a cost table, before the shipped ones. */
void world_use_rows(world *w, const char *rows);
/* A strategy under a framework, without a limit of memory. */
hp_evaluation evaluate_under(world *w, const hp_framework *f, const char *strategy);
hp_space space_of(const world *w, int devices);
hp_search_result search(world *w, int devices, int top);

#endif
