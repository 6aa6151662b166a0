/* costs.h - the cost table as the simulator wants it: one figure per task of a program. */
#ifndef HP_SIM_COSTS_H
#define HP_SIM_COSTS_H

#include "sim/cost_cache.h"
#include "sim/interp.h"

/* Costs of every task of a program; `costs` points into `arena`. The cache belongs to one graph. */
typedef struct hp_program_costs {
    hp_arena *arena;
    hp_cost_cache *cache;
    hp_cost **cost; /* per role and task; messages: within the first replica */
    double **share;
    struct hp_program_costs
        *of_class[1 + HP_MORE_CLASSES]; /* what compute tasks take on each class; NULL: not asked yet */
    int32_t *
        *per_node; /* per group: members on one node, per replica where each has its own; 0 = not asked yet */
} hp_program_costs;
hp_sim_costs hp_costs_of_program(hp_arena *arena, hp_cost_cache *cache, const hp_program *p,
                                 const hp_graph *g);

/* Share of the program's work time (all tasks, all roles) whose figures were measured. */
double hp_costs_measured_share(const hp_sim_costs *costs, const hp_program *p, const hp_graph *g);

#endif
