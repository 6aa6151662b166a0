/* collective_load.c - the load of an algorithm's steps, found by walking through them if it has no closed
 * form. */
#include "plan/collectives/algorithms.h"

typedef struct round_load {
    int32_t sent, added; /* largest number of blocks in a message */
    int32_t crossing;
} round_load;

static void grow(int32_t *most, int32_t n) {
    if (n > *most) *most = n;
}

/* Members fill one node after another, so members of a node are consecutive. */
static round_load load_of_step(const hp_algorithm_ops *ops, const hp_collective_case *c, int32_t step) {
    round_load load = {0};
    int32_t leaving = 0;
    for (int32_t m = 0; m < c->size; m++) {
        const hp_block_step s = ops->step(c, m, 0, step);
        if (m % c->per_node == 0) leaving = 0;
        if (s.recv_from >= 0 && s.add) grow(&load.added, hp_blocks_in(&s.recv));
        if (s.send_to < 0 || s.send_to == m) continue;
        grow(&load.sent, hp_blocks_in(&s.send));
        leaving += s.send_to / c->per_node != m / c->per_node;
        grow(&load.crossing, leaving);
    }
    return load;
}

/* Blocks that a member sends or receives in two lanes, which may take different routes. */
static int32_t busy_in_two_lanes(const hp_algorithm_ops *ops, const hp_collective_case *c, int32_t member) {
    const int32_t steps = ops->steps(c);
    int32_t sent = 0, received = 0;
    for (int32_t step = 0; step < steps; step++)
        for (int32_t lane = 0; lane < 2; lane++) {
            const hp_block_step s = ops->step(c, member, lane, step);
            if (s.send_to >= 0 && s.send_to != member) sent += hp_blocks_in(&s.send);
            if (s.recv_from >= 0 && s.recv_from != member) received += hp_blocks_in(&s.recv);
        }
    return sent > received ? sent : received;
}

static hp_collective_load walk(const hp_algorithm_ops *ops, const hp_collective_case *c, double block) {
    const int32_t steps = ops->steps(c);
    hp_collective_load load = {0};
    int32_t busy = 0;
    for (int32_t step = 0; step < steps; step++) {
        const round_load r = load_of_step(ops, c, step);
        if (r.sent == 0) continue;
        hp_collective_part *part = r.crossing ? &load.across : &load.inside;
        part->rounds++;
        part->sent += r.sent * block;
        load.added += r.added * block;
        grow(&load.crossing, r.crossing);
    }
    for (int32_t m = 0; m < c->size; m++) grow(&busy, busy_in_two_lanes(ops, c, m));
    load.busy = busy * block / 2;
    return load;
}

hp_collective_load hp_load_of_rounds(const hp_collective_case *c, int32_t rounds, double sent,
                                     int32_t crossing) {
    const hp_collective_part part = {rounds, sent};
    if (c->per_node >= c->size) return (hp_collective_load){.inside = part, .busy = sent};
    return (hp_collective_load){.across = part, .busy = sent, .crossing = crossing};
}

hp_collective_load hp_algorithm_load(hp_algorithm a, const hp_collective_case *c) {
    const hp_algorithm_ops *ops = hp_algorithms[a];
    if (ops->load) return ops->load(c);
    return walk(ops, c, 1.0 / (c->what == HP_COLLECTIVE_ALL_TO_ALL ? c->size : hp_algorithm_blocks(a, c)));
}
