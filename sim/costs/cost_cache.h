/* cost_cache.h - caches the cost table's answers for equal work. */
#ifndef HP_COST_CACHE_H
#define HP_COST_CACHE_H

#include "plan/program/work.h"
#include "sim/engine/sim.h"

/* Cached costs for one network, device and precision. Tasks are looked up once per operation, layer and sizes
 * of the operands' boxes; messages and collectives once per route and size. */
typedef struct hp_cost_cache hp_cost_cache;
struct hp_framework;
/* framework: the one that runs the network (costmodels/framework/framework.h); NULL: hplan itself. */
hp_cost_cache *hp_cost_cache_new(hp_arena *arena, const hp_cost_table *t, const hp_machine *m,
                                 const struct hp_framework *framework);

const hp_machine *hp_costs_machine(const hp_cost_cache *c);
const struct hp_framework *hp_costs_framework(const hp_cost_cache *c);
/* Costs as if all devices had that class of the machine's. */
hp_cost_cache *hp_costs_of_class(hp_cost_cache *c, int class);

/* Cached hp_cost_p2p, hp_cost_collective and hp_cost_compute. */
hp_cost hp_costs_p2p(hp_cost_cache *c, hp_wire by, bool same_node, int64_t bytes);
hp_cost hp_costs_collective(hp_cost_cache *c, const hp_collective_call *what, int64_t bytes);
hp_cost hp_costs_work(const hp_cost_cache *c, const hp_work *w);

typedef struct hp_task_cost {
    hp_cost cost;
    double share; /* share of the resource that it may have to share (hp_cost_share) */
    int kernels;  /* number of kernels that a framework runs for it */
} hp_task_cost;
/* Cost of a compute task. */
hp_task_cost hp_costs_task(hp_cost_cache *c, const hp_program *p, const hp_graph *g, const hp_role *r,
                           int task);
/* Cost of a layer's task between these sizes, and its share of a shared resource (hp_cost_share); on the
 * fastest class of devices. */
hp_cost hp_costs_case(hp_cost_cache *cache, const hp_graph *g, hp_dtype dtype, const hp_work_case *c,
                      double *share);

#endif
