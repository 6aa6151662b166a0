/* resources.c - the time of a task alone, and its use of the processors, links and NICs that ranks share. */
#include "sim/engine/state.h"

#include "machines/network.h"

#include <math.h>

int64_t sim_duration_ns(sim *s, int rank, int task) {
    const int world = s->rank[rank].world;
    double t = s->costs->seconds(s->costs->self, s->program, s->graph, world, task);
    if (sim_role(s, rank)->role->task[task].queue == 0) {
        const hp_jitter_process *jitter = &s->options->jitter;
        const hp_draws draws = s->options->draws;
        if (s->rank[rank].late) t *= s->rank[rank].late[task];
        if (world == s->options->straggler_rank) t *= s->options->straggler_factor;
        if (jitter->task > 0) t *= hp_jitter(jitter->task, draws, world, task);
        t *= hp_core_slowness(&s->rank[rank].core, jitter, draws, world, task, s->now_ns, t);
    }
    return t > 0 ? llround(t * 1e9) : 0;
}

int64_t sim_latency_ns(const sim *s, int rank, int task, int64_t work_ns) {
    const hp_sim_costs *c = s->costs;
    if (!c->latency) return 0;
    const int64_t ns = llround(1e9 * c->latency(c->self, s->program, s->graph, s->rank[rank].world, task));
    return ns < work_ns ? ns : work_ns;
}

/* A task's use of the node's cores, or of a shared device; returns the number of uses. */
int sim_compute_uses(const sim *s, int rank, int task, hp_share_use *use) {
    const hp_sim_costs *costs = s->costs;
    const hp_classes *c = s->classes;
    double share =
        costs->share ? costs->share(costs->self, s->program, s->graph, s->rank[rank].world, task) : 0;
    if (!s->on_cores) {
        if (!s->shared_devices || share <= 0) return 0;
        const hp_places *device = &c->place[HP_PLACE_DEVICE];
        *use = (hp_share_use){sim_resource(s, RES_DEVICE, device->of[rank]), share * device->beside[rank]};
        return 1;
    }
    const double core = s->machine->cores_per_node > 0 ? 1.0 / s->machine->cores_per_node : 0;
    const bool moves = sim_role(s, rank)->role->task[task].queue != 0;
    const double busy = moves && share > 0 ? share : 1; /* fraction of its core */
    share = moves ? busy * core : share > core ? share : core;
    if (share <= 0) return 0;
    const hp_places *node = &c->place[HP_PLACE_NODE];
    use[0] = (hp_share_use){sim_resource(s, RES_NODE, node->of[rank]), share * node->beside[rank]};
    if (!s->slices) return 1;
    use[1] = (hp_share_use){sim_resource(s, RES_CORES, node->of[rank]), busy};
    return 2;
}

hp_place_kind sim_place_of(sim_resource_kind kind) {
    static const hp_place_kind at[RES_KINDS] = {
        [RES_NODE] = HP_PLACE_NODE,      [RES_NICS_OUT] = HP_PLACE_NICS,  [RES_NICS_IN] = HP_PLACE_NICS,
        [RES_LEAF_UP] = HP_PLACE_LEAF,   [RES_LEAF_DOWN] = HP_PLACE_LEAF, [RES_LINK_OUT] = HP_PLACE_DEVICE,
        [RES_LINK_IN] = HP_PLACE_DEVICE, [RES_DEVICE] = HP_PLACE_DEVICE,  [RES_HOST_OUT] = HP_PLACE_DEVICE,
        [RES_HOST_IN] = HP_PLACE_DEVICE, [RES_CORES] = HP_PLACE_NODE};
    return at[kind];
}

/* Capacity: in NICs for a set of NICs or a leaf switch, otherwise 1. */
static double capacity_of(const hp_machine *m, sim_resource_kind kind) {
    const double nics = m->nics_per_node > 0 ? m->nics_per_node : 1;
    if (kind == RES_NICS_OUT || kind == RES_NICS_IN) return nics / hp_network_sets(m);
    return kind == RES_LEAF_UP || kind == RES_LEAF_DOWN ? hp_network_leaf_links(m) : 1;
}

void sim_open_resources(sim *s) {
    int32_t *first = s->resource_first;
    for (int k = 0; k < RES_KINDS; k++) {
        const bool any = k != RES_CORES || s->slices;
        first[k + 1] = first[k] + (any ? s->classes->place[sim_place_of((sim_resource_kind)k)].n : 0);
    }
    double *capacity = HP_NEW(s->arena, double, first[RES_KINDS]);
    for (int k = 0; k < RES_KINDS; k++)
        for (int r = first[k]; r < first[k + 1]; r++)
            capacity[r] = capacity_of(s->machine, (sim_resource_kind)k);
    s->fluid = hp_fluid_new(s->arena, first[RES_KINDS], capacity, &s->events);
    sim_slices_open(s);
}
