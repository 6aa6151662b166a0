/* random_world.h - programs with closed-form costs on made-up machines, for laws of the simulator. */
#ifndef HP_TESTS_RANDOM_WORLD_H
#define HP_TESTS_RANDOM_WORLD_H

#include "plan/lower/lower.h"
#include "sim/engine/sim.h"
#include "tests/support/plan/random_net.h"

/* `nodes` nodes of `per_node` devices; cpu: communication uses the cores. */
hp_machine test_machine(int nodes, int per_node, bool cpu);

hp_program *lower_training(hp_arena *arena, const hp_graph *g, const hp_strategy *s, int64_t batch,
                           bool place);

int64_t makespan_ns(hp_arena *arena, const hp_program *p, const hp_graph *g, const hp_machine *m,
                    const hp_sim_costs *costs, bool fold);

/* Costs that depend only on the task, so that replicas are alike: compute up to 50 us, messages by
 * size; self: the seed. */
double random_seconds(void *self, const hp_program *p, const hp_graph *g, int rank, int task);

typedef struct world {
    hp_arena *arena;
    hp_graph *g;
    hp_program *p;
    hp_strategy s;
    uint64_t seed;
    hp_sim_costs costs; /* set by the test */
} world;

/* A random network with a random strategy of any kind, on up to 24 ranks. */
world random_world(uint64_t seed);

#endif
