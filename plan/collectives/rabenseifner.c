/* rabenseifner.c - all-reduce as a reduce-scatter by recursive halving and an all-gather by recursive
 * doubling. Takes 2 log2 p steps and, for a power of two of members, moves as few bytes as a ring
 * (Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005, sections 4.4 and 4.5). Reduce-scatter is its first
 * half, for a power of two of members. */
#include "plan/collectives/algorithms.h"

static bool scatters(const hp_collective_case *c) {
    return c->what == HP_COLLECTIVE_REDUCE_SCATTER;
}

static bool rabenseifner_fits(const hp_collective_case *c) {
    return !scatters(c) || hp_power_of_two(c->size);
}

static int32_t rabenseifner_blocks(const hp_collective_case *c) {
    return 1 << hp_log2_floor(c->size);
}

static int32_t inner_steps(const hp_collective_case *c) {
    return (scatters(c) ? 1 : 2) * hp_log2_floor(c->size);
}

static int32_t rabenseifner_steps(const hp_collective_case *c) {
    return hp_folded_steps(c->size, inner_steps(c));
}

/* Members at distance d share 2d blocks; each keeps the half that contains its own. */
static hp_block_step exchange_halves(int32_t member, int32_t d) {
    hp_block_step s = hp_exchange_gathered(member, d);
    const hp_block_range kept = s.send;
    s.send = s.recv;
    s.recv = kept;
    s.add = true;
    return s;
}

static hp_block_step halve_then_double(int32_t size, int32_t member, int32_t step) {
    const int32_t k = hp_log2_floor(size);
    return step < k ? exchange_halves(member, size >> (step + 1))
                    : hp_exchange_gathered(member, 1 << (step - k));
}

static hp_block_step rabenseifner_step(const hp_collective_case *c, int32_t member, int32_t lane,
                                       int32_t step) {
    (void)lane;
    return hp_folded_step(c, member, step, inner_steps(c), rabenseifner_blocks(c), halve_then_double);
}

const hp_algorithm_ops hp_collective_rabenseifner = {.name = "rabenseifner",
                                                     .does = HP_DOES(ALLREDUCE) | HP_DOES(REDUCE_SCATTER),
                                                     .fits = rabenseifner_fits,
                                                     .blocks = rabenseifner_blocks,
                                                     .steps = rabenseifner_steps,
                                                     .step = rabenseifner_step};
