/* ring.c - blocks travel around a ring of all members. Reduce-scatter and all-gather take p-1 steps with 1/p
 * of the data each; all-reduce is one after the other (Patarasu & Yuan 2009). Moves the fewest bytes; for
 * long messages. */
#include "plan/collectives/algorithms.h"

static int32_t ring_steps(const hp_collective_case *c) {
    return (c->what == HP_COLLECTIVE_ALLREDUCE ? 2 : 1) * (c->size - 1);
}

/* Block b starts at member b + 1 and collects its sum on the way to member b. From there it travels around
 * again as the result; an all-gather starts here. */
static hp_block_step ring_step(const hp_collective_case *c, int32_t member, int32_t lane, int32_t step) {
    (void)lane;
    const int32_t p = c->size, t = step % (p - 1);
    const bool add = c->what != HP_COLLECTIVE_ALL_GATHER && step < p - 1;
    const int32_t out = hp_around(member - t - add, p);
    return (hp_block_step){.send_to = hp_around(member + 1, p),
                           .recv_from = hp_around(member - 1, p),
                           .send = hp_blocks(out, 1),
                           .recv = hp_blocks(hp_around(out - 1, p), 1),
                           .add = add};
}

/* One message leaves each node at a time. */
static hp_collective_load ring_load(const hp_collective_case *c) {
    const int32_t steps = ring_steps(c);
    hp_collective_load load = hp_load_of_rounds(c, steps, (double)steps / c->size, 1);
    if (c->what != HP_COLLECTIVE_ALL_GATHER) load.added = (double)(c->size - 1) / c->size;
    return load;
}

const hp_algorithm_ops hp_collective_ring = {.name = "ring",
                                             .does = HP_DOES(ALLREDUCE) | HP_DOES(REDUCE_SCATTER) |
                                                     HP_DOES(ALL_GATHER),
                                             .steps = ring_steps,
                                             .step = ring_step,
                                             .load = ring_load};
