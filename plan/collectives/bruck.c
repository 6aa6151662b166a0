/* bruck.c - ceil(log2 p) steps at distances 1, 2, 4, ...: all-gather and all-to-all (Bruck, Ho, Kipnis,
 * Upfal, Weathersby 1997, sections 4 and 3), and the dissemination barrier (Hensgen, Finkel, Manber 1988).
 * Takes the fewest steps. An all-to-all sends each block up to log2 p times, so it suits short blocks. */
#include "plan/collectives/algorithms.h"

static int32_t bruck_blocks(const hp_collective_case *c) {
    return c->what == HP_COLLECTIVE_BARRIER ? 1 : c->size;
}

static int32_t bruck_steps(const hp_collective_case *c) {
    return hp_log2_ceil(c->size) + (c->what == HP_COLLECTIVE_ALL_TO_ALL ? 1 : 0);
}

static hp_block_step downwards(const hp_collective_case *c, int32_t member, int32_t d) {
    return (hp_block_step){.send_to = hp_around(member - d, c->size),
                           .recv_from = hp_around(member + d, c->size)};
}

/* A member holds the d blocks starting with its own. */
static hp_block_step gather(const hp_collective_case *c, int32_t member, int32_t d) {
    const int32_t missing = c->size - d, n = d < missing ? d : missing;
    hp_block_step s = downwards(c, member, d);
    s.send = hp_blocks(member, n);
    s.recv = hp_blocks(s.recv_from, n);
    return s;
}

/* Incoming place j, counted from the member's own, is for the block that travels j members downwards in total
 * and so comes from member + j. Sorted by destination: a place whose j has bit d set moves d members down. */
static hp_block_step sort_in(const hp_collective_case *c, int32_t member) {
    const hp_block_range up = hp_blocks(c->size + member, c->size);
    hp_block_range down = hp_blocks(member, c->size);
    down.down = true;
    return (hp_block_step){.send_to = member, .recv_from = member, .send = down, .recv = up};
}

static hp_block_step move_on(const hp_collective_case *c, int32_t member, int32_t d) {
    hp_block_step s = downwards(c, member, d);
    s.send = s.recv =
        (hp_block_range){.first = c->size + s.recv_from, .span = c->size - d, .width = d, .stride = 2 * d};
    return s;
}

/* After the step at distance d, a member has heard from 2d members, in the last step from some of them
 * twice. */
static hp_block_step disseminate(const hp_collective_case *c, int32_t member, int32_t d) {
    hp_block_step s = downwards(c, member, d);
    s.send = s.recv = hp_blocks(0, 1);
    s.add = true;
    return s;
}

static hp_block_step bruck_step(const hp_collective_case *c, int32_t member, int32_t lane, int32_t step) {
    (void)lane;
    if (c->what == HP_COLLECTIVE_BARRIER) return disseminate(c, member, 1 << step);
    if (c->what == HP_COLLECTIVE_ALL_GATHER) return gather(c, member, 1 << step);
    return step == 0 ? sort_in(c, member) : move_on(c, member, 1 << (step - 1));
}

const hp_algorithm_ops hp_collective_bruck = {.name = "bruck",
                                              .does = HP_DOES(ALL_GATHER) | HP_DOES(ALL_TO_ALL) |
                                                      HP_DOES(BARRIER),
                                              .even = HP_DOES(ALL_TO_ALL),
                                              .blocks = bruck_blocks,
                                              .steps = bruck_steps,
                                              .step = bruck_step};
