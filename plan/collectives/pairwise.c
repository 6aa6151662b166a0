/* pairwise.c - sends each block straight to its member: step d sends to the member d further on (Thakur,
 * Rabenseifner, Gropp 2005, sections 4.3 and 4.4). All-to-all and reduce-scatter. Moves the fewest bytes in
 * p-1 steps. */
#include "plan/collectives/algorithms.h"

/* An all-to-all copies a member's blocks for itself at distance 0. */
static int32_t first_distance(const hp_collective_case *c) {
    return c->what == HP_COLLECTIVE_ALL_TO_ALL ? 0 : 1;
}

static int32_t pairwise_steps(const hp_collective_case *c) {
    return c->size - first_distance(c);
}

static hp_block_step pairwise_step(const hp_collective_case *c, int32_t member, int32_t lane, int32_t step) {
    (void)lane;
    const int32_t d = step + first_distance(c), to = hp_around(member + d, c->size),
                  from = hp_around(member - d, c->size);
    const bool add = c->what == HP_COLLECTIVE_REDUCE_SCATTER;
    return (hp_block_step){.send_to = to,
                           .recv_from = from,
                           .send = hp_blocks(to, 1),
                           .recv = hp_blocks(add ? member : c->size + from, 1),
                           .add = add};
}

/* All members of a node may send across nodes at once, limited by the number of members elsewhere. */
static hp_collective_load pairwise_load(const hp_collective_case *c) {
    const int32_t rounds = c->size - 1, others = c->size - c->per_node;
    const double sent = (double)rounds / c->size;
    hp_collective_load load = hp_load_of_rounds(c, rounds, sent, c->per_node < others ? c->per_node : others);
    if (c->what == HP_COLLECTIVE_REDUCE_SCATTER) load.added = sent;
    return load;
}

const hp_algorithm_ops hp_collective_pairwise = {.name = "pairwise",
                                                 .does = HP_DOES(ALL_TO_ALL) | HP_DOES(REDUCE_SCATTER),
                                                 .steps = pairwise_steps,
                                                 .step = pairwise_step,
                                                 .load = pairwise_load};
