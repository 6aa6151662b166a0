/* costs.h - the cost table as the simulator wants it: one figure per task of a program. */
#ifndef HP_SIM_COSTS_H
#define HP_SIM_COSTS_H

#include "plan/program/work.h"
#include "sim/interp.h"

/* Costs of tasks for one network, device, precision: looked up once per operation, layer and sizes of the
 * operands' boxes; of messages and collectives, once per way and bytes. */
typedef struct hp_cost_cache hp_cost_cache;
struct hp_framework;
/* framework: that runs the network (costmodels/framework/framework.h); NULL: hplan itself. */
hp_cost_cache *hp_cost_cache_new(hp_arena *arena, const hp_cost_table *t, const hp_machine *m,
                                 const struct hp_framework *framework);

const hp_machine *hp_costs_machine(const hp_cost_cache *c);
/* Costs as if all devices were of that class of the machine's. */
hp_cost_cache *hp_costs_of_class(hp_cost_cache *c, int class);

/* hp_cost_p2p and hp_cost_collective, remembered; of other work, hp_cost_compute. */
hp_cost hp_costs_p2p(hp_cost_cache *c, hp_wire by, bool same_node, int64_t bytes);
hp_cost hp_costs_collective(hp_cost_cache *c, const hp_collective_call *what, int64_t bytes);
hp_cost hp_costs_work(const hp_cost_cache *c, const hp_work *w);

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

/* What a layer's task takes between these sizes, and its share of what it may have to share (hp_cost_share); on the
 * fastest class of devices. */
hp_cost hp_costs_case(hp_cost_cache *cache, const hp_graph *g, hp_dtype dtype, const hp_work_case *c,
                      double *share);

/* Share of the program's work time (all tasks, all roles) whose figures were measured. */
double hp_costs_measured_share(const hp_sim_costs *costs, const hp_program *p, const hp_graph *g);

#endif
