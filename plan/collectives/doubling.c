/* doubling.c - recursive doubling: in each of log2 p steps, pairs exchange everything they have (Thakur,
 * Rabenseifner, Gropp 2005, sections 4.1 and 4.5). Takes the fewest steps; as an all-reduce, for short
 * messages. The all-gather needs a power of two of members. */
#include "plan/collectives/algorithms.h"

static bool gathers(const hp_collective_case *c) {
    return c->what == HP_COLLECTIVE_ALL_GATHER;
}

static bool doubling_fits(const hp_collective_case *c) {
    return !gathers(c) || hp_power_of_two(c->size);
}

static int32_t doubling_blocks(const hp_collective_case *c) {
    return gathers(c) ? c->size : 1;
}

static int32_t doubling_steps(const hp_collective_case *c) {
    return hp_folded_steps(c->size, hp_log2_floor(c->size));
}

static hp_block_step exchange_sums(int32_t size, int32_t member, int32_t step) {
    (void)size;
    const int32_t peer = member ^ 1 << step;
    const hp_block_range all = hp_blocks(0, 1);
    return (hp_block_step){.send_to = peer, .recv_from = peer, .send = all, .recv = all, .add = true};
}

static hp_block_step doubling_step(const hp_collective_case *c, int32_t member, int32_t lane, int32_t step) {
    (void)lane;
    if (gathers(c)) return hp_exchange_gathered(member, 1 << step);
    return hp_folded_step(c, member, step, hp_log2_floor(c->size), 1, exchange_sums);
}

const hp_algorithm_ops hp_collective_doubling = {.name = "doubling",
                                                 .does = HP_DOES(ALLREDUCE) | HP_DOES(ALL_GATHER),
                                                 .fits = doubling_fits,
                                                 .blocks = doubling_blocks,
                                                 .steps = doubling_steps,
                                                 .step = doubling_step};
