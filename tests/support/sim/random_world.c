/* random_world.c - random programs, and the durations of their tasks. */
#include "tests/support/sim/random_world.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

hp_machine test_machine(int nodes, int per_node, bool cpu) {
    return (hp_machine){
        .name = "test",
        .nodes = nodes,
        .devices_per_node = per_node,
        .cores_per_node = per_node,
        .nics_per_node = 1,
        .device = {.name = "cpu", .memory_bytes = 1 << 30, .flops_per_s = 1e9, .bytes_per_s = 1e9},
        .intra = {"shm", 1e-6, 1e9},
        .inter = {"net", 1e-5, 1e8},
        .share_cpu = cpu};
}

hp_program *lower_training(hp_arena *arena, const hp_graph *g, const hp_strategy *s, int64_t batch,
                           bool place) {
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = batch, .place = place};
    if (hp_lower(arena, g, s, &o, &p, &err) != HP_OK) fail_msg("%s", err.text);
    return p;
}

int64_t makespan_ns(hp_arena *arena, const hp_program *p, const hp_graph *g, const hp_machine *m,
                    const hp_sim_costs *costs, bool fold) {
    const hp_sim_options o = {.fold = fold, .straggler_rank = -1};
    hp_sim_result r;
    hp_error err = {HP_OK, ""};
    if (hp_sim_run(arena, p, g, m, costs, &o, &r, &err) != HP_OK) fail_msg("%s", err.text);
    return r.makespan_ns;
}

double random_seconds(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)g;
    const uint64_t *seed = self;
    const int role = rank % p->n_role;
    const hp_task *t = &p->role[role].task[task];
    const double bytes = (double)hp_task_bytes(t);
    switch (hp_task_infos[t->op].queue) {
    case HP_QUEUE_COMPUTE:
        return 5e-5 * hp_rng_uniform(*seed, (uint64_t)role, (uint64_t)task);
    case HP_QUEUE_COLL:
        return 3e-6 + bytes * 2e-10;
    default:
        return 1e-6 + bytes * 1e-10;
    }
}

world random_world(uint64_t seed) {
    dice d = {seed, 9000};
    world w = {.arena = hp_arena_new(), .seed = seed};
    const int groups = roll(&d, 1, 12);
    w.g = random_net(w.arena, seed, roll(&d, 4, 12));
    w.s = random_strategy_of(&d, w.g, groups, 24, DRAW_ALL);
    w.g = random_precision(&d, w.arena, w.g, &w.s);
    w.p = lower_training(w.arena, w.g, &w.s, hp_strategy_batch(&w.s, groups), coin(&d));
    return w;
}
