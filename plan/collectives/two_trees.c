/* two_trees.c - two binary trees below the root, each of all other members: broadcast, reduce and all-reduce.
 * Even lanes of the data use one tree, odd lanes the other (Sanders, Speck, Traff 2009). A member is an inner
 * node of at most one tree, so it sends twice in every second lane: long data moves at full bandwidth in a
 * logarithmic number of steps.
 *
 * Members are numbered from the root, which is 0 and above both trees; the trees have n = p - 1 members. The
 * first tree numbers 1 .. n in order, as a full tree of 2^k - 1 >= n nodes without those beyond n; odd ones
 * are leaves. The second is its mirror image or, for odd n, the first tree shifted by one: its even members
 * are leaves. */
#include "plan/collectives/algorithms.h"

/* Converts between a member and its place in its lane's tree. */
static int32_t place_of(int32_t v, int32_t n, int32_t lane) {
    if (v == 0 || lane % 2 == 0) return v;
    return n % 2 ? v % n + 1 : n + 1 - v;
}
static int32_t member_at(const hp_collective_case *c, int32_t place, int32_t lane) {
    const int32_t n = c->size - 1;
    int32_t v = place;
    if (place > 0 && lane % 2) v = n % 2 ? (place + n - 2) % n + 1 : n + 1 - place;
    return (v + c->root) % c->size;
}

static int32_t lowest_bit(int32_t place) {
    return place & -place;
}

/* The tree's own root is the child of the collective's root. */
static int32_t parent_of(int32_t place, int32_t n) {
    if (place == 1 << hp_log2_floor(n)) return 0;
    int32_t parent = place;
    do {
        const int32_t bit = lowest_bit(parent);
        parent = (parent ^ bit) | bit << 1;
    } while (parent > n);
    return parent;
}

/* Children, 0: none. */
static int32_t left_of(int32_t place, int32_t n) {
    if (place == 0) return 1 << hp_log2_floor(n);
    return place % 2 ? 0 : place - lowest_bit(place) / 2;
}
static int32_t right_of(int32_t place, int32_t n) {
    if (place == 0) return 0;
    for (int32_t d = lowest_bit(place) / 2; d > 0; d /= 2)
        if (place + d <= n) return place + d;
    return 0;
}

/* The step in which a broadcast reaches a place; a parent sends to its left child first. */
static int32_t reached(int32_t place, int32_t n) {
    int32_t step = -1;
    for (int32_t parent; place > 0; place = parent) {
        parent = parent_of(place, n);
        step += place < parent || parent == 0 ? 1 : 2;
    }
    return step;
}

/* Steps of one pass through a tree, up or down. The longest path is the rightmost one in a full tree (2 steps
 * a level), otherwise one beside it. */
static int32_t one_way(const hp_collective_case *c) {
    const int32_t n = c->size - 1;
    return n == 0 ? 0 : 2 * hp_log2_floor(n) + (hp_power_of_two(n + 1) ? 1 : 0);
}

static int32_t two_trees_steps(const hp_collective_case *c) {
    return (c->what == HP_COLLECTIVE_ALLREDUCE ? 2 : 1) * one_way(c);
}

/* A broadcast step: who sends to a member, and whom it sends to. */
static hp_block_step broadcast(const hp_collective_case *c, int32_t member, int32_t lane, int32_t step) {
    const int32_t n = c->size - 1, place = place_of((member - c->root + c->size) % c->size, n, lane);
    const int32_t since = step - reached(place, n);
    const int32_t child = since == 1 ? left_of(place, n) : since == 2 ? right_of(place, n) : 0;
    hp_block_step s = hp_idle();
    s.send = s.recv = hp_blocks(0, 1);
    if (since == 0) s.recv_from = member_at(c, parent_of(place, n), lane);
    if (child) s.send_to = member_at(c, child, lane);
    return s;
}

/* The way up is the way down in reverse. */
static hp_block_step two_trees_step(const hp_collective_case *c, int32_t member, int32_t lane, int32_t step) {
    const int32_t way = one_way(c);
    const bool up = c->what != HP_COLLECTIVE_BROADCAST && step < way;
    hp_block_step s = broadcast(c, member, lane, up ? way - 1 - step : step % way);
    if (!up) return s;
    const int32_t parent = s.recv_from;
    s.recv_from = s.send_to;
    s.send_to = parent;
    s.add = true;
    return s;
}

const hp_algorithm_ops hp_collective_two_trees = {.name = "two_trees",
                                                  .does = HP_DOES(ALLREDUCE) | HP_DOES(BROADCAST) |
                                                          HP_DOES(REDUCE),
                                                  .blocks = hp_one_block,
                                                  .steps = two_trees_steps,
                                                  .step = two_trees_step};
