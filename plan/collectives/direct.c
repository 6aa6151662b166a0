/* direct.c - a star: every member exchanges directly with the root, one after another (the linear algorithms
 * of MPI libraries; a parameter server, Li et al., OSDI 2014).
 *
 * All the data crosses the root's link p-1 times, which trees and rings avoid. The root starts with its
 * successor and goes around, so that concurrent roots never want the same member. */
#include "plan/collectives/algorithms.h"

static int32_t direct_steps(const hp_collective_case *c) {
    return c->size - 1;
}

static hp_block_step direct_step(const hp_collective_case *c, int32_t member, int32_t lane, int32_t step) {
    (void)lane;
    const bool down = hp_collective_infos[c->what].begins == HP_BLOCKS_ROOT, is_root = member == c->root;
    const int32_t other = (c->root + 1 + step) % c->size;
    hp_block_step s = hp_idle();
    if (!is_root && member != other) return s;
    *(is_root == down ? &s.send_to : &s.recv_from) = is_root ? other : c->root;
    *(is_root == down ? &s.send : &s.recv) = hp_blocks(0, 1);
    s.add = is_root && !down;
    return s;
}

/* Members on the root's node communicate within the node. */
static hp_collective_load direct_load(const hp_collective_case *c) {
    const int32_t first = c->root / c->per_node * c->per_node, left = c->size - first,
                  near = (left < c->per_node ? left : c->per_node) - 1, far = c->size - 1 - near;
    const bool adds = hp_collective_infos[c->what].adds;
    return (hp_collective_load){.inside = {near, near},
                                .across = {far, far},
                                .added = adds ? c->size - 1 : 0,
                                .busy = c->size - 1,
                                .crossing = far > 0};
}

const hp_algorithm_ops hp_collective_direct = {.name = "direct",
                                               .does = HP_DOES(BROADCAST) | HP_DOES(REDUCE),
                                               .blocks = hp_one_block,
                                               .steps = direct_steps,
                                               .step = direct_step,
                                               .load = direct_load};
