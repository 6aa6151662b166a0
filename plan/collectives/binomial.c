/* binomial.c - binomial tree rooted at the root, in ceil(log2 p) steps: broadcast, reduce, scatter, gather
 * (Thakur, Rabenseifner, Gropp 2005, sections 4.2 and 4.5). For short messages.
 *
 * Members are numbered from the root. Member v is the parent of v + d for each power of two d below v's
 * lowest set bit; the subtree of v + d is the d members starting there. Far messages go first, so that few
 * cross nodes when members fill one node after another. */
#include "plan/collectives/algorithms.h"

static int32_t binomial_blocks(const hp_collective_case *c) {
    return hp_collective_parts(c->what) ? c->size : 1;
}

static int32_t binomial_steps(const hp_collective_case *c) {
    return hp_log2_ceil(c->size);
}

/* The blocks that move between member v, numbered from the root, and its parent v - d. */
static hp_block_range subtree(const hp_collective_case *c, int32_t v, int32_t d) {
    if (!hp_collective_parts(c->what)) return hp_blocks(0, 1);
    return hp_blocks(hp_around(v + c->root - c->size, c->size), v + d < c->size ? d : c->size - v);
}

static hp_block_step binomial_step(const hp_collective_case *c, int32_t member, int32_t lane, int32_t step) {
    (void)lane;
    const bool down = hp_collective_infos[c->what].begins == HP_BLOCKS_ROOT;
    const int32_t d = 1 << (down ? binomial_steps(c) - 1 - step : step);
    const int32_t v = hp_around(member - c->root, c->size);
    const bool child = v % (2 * d) == d, parent = v % (2 * d) == 0 && v + d < c->size;
    hp_block_step s = hp_idle();
    if (!child && !parent) return s;
    const int32_t peer = hp_around(child ? member - d : member + d, c->size);
    *(child == down ? &s.recv_from : &s.send_to) = peer;
    *(child == down ? &s.recv : &s.send) = subtree(c, child ? v : v + d, d);
    s.add = parent && hp_collective_infos[c->what].adds;
    return s;
}

const hp_algorithm_ops hp_collective_binomial = {.name = "binomial",
                                                 .does = HP_DOES(BROADCAST) | HP_DOES(REDUCE) |
                                                         HP_DOES(GATHER) | HP_DOES(SCATTER),
                                                 .blocks = binomial_blocks,
                                                 .steps = binomial_steps,
                                                 .step = binomial_step};
