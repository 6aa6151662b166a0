/* two_levels.c - collectives composed of others within each node and across nodes. An all-reduce is a
 * reduce-scatter within the node, an all-reduce of each block across nodes, and an all-gather within the node
 * (Cho, Finkler, Serrano, Kung, Hunter 2019, BlueConnect; likewise for the others). Nodes exchange the fewest
 * bytes, and all members of a node send at once.
 *
 * An all-to-all first collects on each member what its node sends to members of its number in all nodes. Then
 * one message goes to each node instead of one to each member (Hwang et al. 2023, Tutel: 2DH).
 *
 * Members fill nodes one after another: member i of node n is n * per_node + i. */
#include "plan/collectives/algorithms.h"

typedef struct level {
    hp_collective what;
    bool across; /* across nodes, among members with the same number in their node */
} level;

enum { MAX_LEVELS = 3 };
typedef struct levels {
    int32_t n;
    level level[MAX_LEVELS];
} levels;

static const levels levels_of[HP_COLLECTIVES] = {
    [HP_COLLECTIVE_ALLREDUCE] = {3,
                                 {{HP_COLLECTIVE_REDUCE_SCATTER, false},
                                  {HP_COLLECTIVE_ALLREDUCE, true},
                                  {HP_COLLECTIVE_ALL_GATHER, false}}},
    [HP_COLLECTIVE_REDUCE_SCATTER] = {2,
                                      {{HP_COLLECTIVE_REDUCE_SCATTER, false},
                                       {HP_COLLECTIVE_REDUCE_SCATTER, true}}},
    [HP_COLLECTIVE_ALL_GATHER] = {2, {{HP_COLLECTIVE_ALL_GATHER, true}, {HP_COLLECTIVE_ALL_GATHER, false}}},
    [HP_COLLECTIVE_ALL_TO_ALL] = {2, {{HP_COLLECTIVE_ALL_TO_ALL, false}, {HP_COLLECTIVE_ALL_TO_ALL, true}}},
    [HP_COLLECTIVE_BROADCAST] = {2, {{HP_COLLECTIVE_BROADCAST, true}, {HP_COLLECTIVE_BROADCAST, false}}},
    [HP_COLLECTIVE_REDUCE] = {2, {{HP_COLLECTIVE_REDUCE, false}, {HP_COLLECTIVE_REDUCE, true}}},
};

static bool two_levels_fits(const hp_collective_case *c) {
    return c->per_node > 1 && c->per_node < c->size && c->size % c->per_node == 0;
}

static bool whole(const hp_collective_case *c) {
    return c->what == HP_COLLECTIVE_BROADCAST || c->what == HP_COLLECTIVE_REDUCE;
}

static int32_t two_levels_blocks(const hp_collective_case *c) {
    return whole(c) ? 1 : c->size;
}

/* The work of a level as a collective among its own members. */
static hp_collective_case case_of(const hp_collective_case *c, const level *l) {
    const int32_t size = l->across ? c->size / c->per_node : c->per_node;
    return (hp_collective_case){.what = l->what,
                                .size = size,
                                .root = l->across ? c->root / c->per_node : c->root % c->per_node,
                                .per_node = size};
}

/* Uses recursive halving, in log2 p steps, if it moves no more bytes than a ring. */
static const hp_algorithm_ops *ops_of(const hp_collective_case *c) {
    static const hp_algorithm_ops *const in_steps[HP_COLLECTIVES] = {
        [HP_COLLECTIVE_ALLREDUCE] = &hp_collective_rabenseifner,
        [HP_COLLECTIVE_REDUCE_SCATTER] = &hp_collective_rabenseifner,
        [HP_COLLECTIVE_ALL_GATHER] = &hp_collective_bruck,
        [HP_COLLECTIVE_BROADCAST] = &hp_collective_binomial,
        [HP_COLLECTIVE_REDUCE] = &hp_collective_binomial};
    const bool adds_parts = c->what == HP_COLLECTIVE_ALLREDUCE || c->what == HP_COLLECTIVE_REDUCE_SCATTER;
    return adds_parts && !hp_power_of_two(c->size) ? &hp_collective_ring : in_steps[c->what];
}

static int32_t steps_of(const hp_collective_case *c) {
    return c->what == HP_COLLECTIVE_ALL_TO_ALL ? c->size : ops_of(c)->steps(c);
}

static int32_t two_levels_steps(const hp_collective_case *c) {
    int32_t steps = 0;
    for (int32_t i = 0; i < levels_of[c->what].n; i++) {
        const hp_collective_case inner = case_of(c, &levels_of[c->what].level[i]);
        steps += steps_of(&inner);
    }
    return steps;
}

/* Maps blocks [first, first + span) of a level to blocks of the whole. An all-reduce may place its blocks
 * freely: a level within the node holds one run of blocks per member, with one block per node. Blocks with
 * fixed places belong to the member of that number. Within a node, a level's block is those of all members
 * with that number; across nodes, it is one member's block. */
static hp_block_range range_of(const hp_collective_case *c, const level *l, int32_t i,
                               const hp_block_range *r) {
    const int32_t g = c->per_node, nodes = c->size / g;
    if (whole(c)) return *r;
    if (c->what == HP_COLLECTIVE_ALLREDUCE)
        return l->across ? hp_blocks(i * nodes + r->first, r->span)
                         : hp_blocks(r->first * nodes, r->span * nodes);
    if (l->across)
        return (hp_block_range){.first = r->first * g + i, .span = r->span * g, .width = 1, .stride = g};
    return (hp_block_range){.first = r->first, .span = c->size, .width = r->span, .stride = g};
}

static hp_block_step composed(const hp_collective_case *c, const level *l, int32_t member, int32_t lane,
                              int32_t step) {
    const hp_collective_case inner = case_of(c, l);
    const int32_t g = c->per_node, i = member % g, n = member / g;
    if (l->across && whole(c) && i != c->root % g) return hp_idle();
    hp_block_step s = ops_of(&inner)->step(&inner, l->across ? n : i, lane, step);
    if (s.send_to >= 0) s.send_to = l->across ? s.send_to * g + i : n * g + s.send_to;
    if (s.recv_from >= 0) s.recv_from = l->across ? s.recv_from * g + i : n * g + s.recv_from;
    s.send = range_of(c, l, i, &s.send);
    s.recv = range_of(c, l, i, &s.recv);
    return s;
}

/* Within the node, member i receives the blocks for members i of all nodes, each placed by its node and the
 * sender's number. Across nodes, step s lets nodes n and s - n swap what lies in each other's places. */
static hp_block_step exchange(const hp_collective_case *c, const level *l, int32_t member, int32_t step) {
    const int32_t p = c->size, g = c->per_node, i = member % g, n = member / g;
    hp_block_step s = hp_idle();
    if (l->across) {
        const int32_t peer = hp_around(step - n, p / g);
        if (peer != n) s.send_to = s.recv_from = peer * g + i;
        s.send = s.recv = hp_blocks(p + peer * g, g);
        return s;
    }
    const int32_t to = hp_around(i + step, g), from = hp_around(i - step, g);
    s.send_to = n * g + to;
    s.recv_from = n * g + from;
    s.send = (hp_block_range){.first = to, .span = p, .width = 1, .stride = g};
    s.recv = (hp_block_range){.first = p + from, .span = p, .width = 1, .stride = g};
    return s;
}

static hp_block_step two_levels_step(const hp_collective_case *c, int32_t member, int32_t lane,
                                     int32_t step) {
    const level *l = levels_of[c->what].level;
    for (;; l++) {
        const hp_collective_case inner = case_of(c, l);
        const int32_t steps = steps_of(&inner);
        if (step < steps) break;
        step -= steps;
    }
    return c->what == HP_COLLECTIVE_ALL_TO_ALL ? exchange(c, l, member, step)
                                               : composed(c, l, member, lane, step);
}

const hp_algorithm_ops hp_collective_two_levels = {.name = "two_levels",
                                                   .does = HP_DOES(ALLREDUCE) | HP_DOES(REDUCE_SCATTER) |
                                                           HP_DOES(ALL_GATHER) | HP_DOES(ALL_TO_ALL) |
                                                           HP_DOES(BROADCAST) | HP_DOES(REDUCE),
                                                   .even = HP_DOES(ALL_TO_ALL),
                                                   .fits = two_levels_fits,
                                                   .blocks = two_levels_blocks,
                                                   .steps = two_levels_steps,
                                                   .step = two_levels_step};
