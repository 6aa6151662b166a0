/* resources.c - how long a task takes alone, and what it takes of the processors, links and cards that ranks share. */
#include "sim/state.h"

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

/* What a task takes of the node's cores, or of a device that it shares; returns the number of uses. */
int sim_compute_uses(const sim *s, int rank, int task, hp_share_use *use) {
    const hp_sim_costs *costs = s->costs;
    const hp_classes *c = s->classes;
    double share =
        costs->share ? costs->share(costs->self, s->program, s->graph, s->rank[rank].world, task) : 0;
    if (!s->on_cores) {
        if (!s->shared_devices || share <= 0) return 0;
        *use = (hp_share_use){res_device(s, c->device[rank]), share * c->on_device[rank]};
        return 1;
    }
    const double core = s->machine->cores_per_node > 0 ? 1.0 / s->machine->cores_per_node : 0;
    const bool moves = sim_role(s, rank)->role->task[task].queue != 0;
    const double busy = moves && share > 0 ? share : 1; /* of its core */
    share = moves ? busy * core : share > core ? share : core;
    if (share <= 0) return 0;
    use[0] = (hp_share_use){c->node[rank], share * c->on_node[rank]};
    if (!s->slices) return 1;
    use[1] = (hp_share_use){res_cores(s, c->node[rank]), busy};
    return 2;
}

void sim_open_resources(sim *s) {
    const hp_machine *m = s->machine;
    const int n_node = s->classes->n_node, n_resource = res_cores(s, s->slices ? n_node : 0);
    double *capacity = HP_NEW(s->arena, double, n_resource);
    for (int r = 0; r < n_resource; r++) capacity[r] = 1;
    for (int r = n_node; r < 3 * n_node; r++) capacity[r] = m->nics_per_node > 0 ? m->nics_per_node : 1;
    s->fluid = hp_fluid_new(s->arena, n_resource, capacity, &s->events);
    sim_slices_open(s);
}
