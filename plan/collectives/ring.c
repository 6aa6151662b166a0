/* ring.c - all-reduce on a ring: reduce-scatter, then all-gather, 2(p-1) steps of 1/p of the data (Patarasu &
 * Yuan 2009). Moves the fewest bytes; for long messages. */
#include "plan/collectives/algorithms.h"

static int32_t ring_blocks(int32_t size) {
    return size;
}

static int32_t ring_steps(int32_t size) {
    return 2 * (size - 1);
}

/* Block b starts at member b and collects its sum on the way around; it arrives whole at member b - 1, and
 * goes around once more. */
static hp_block_step ring_step(int32_t size, int32_t member, int32_t step) {
    const bool reduce = step < size - 1;
    const int32_t t = reduce ? step : step - (size - 1);
    const int32_t out = ((reduce ? member : member + 1) - t + 2 * size) % size;
    return (hp_block_step){.send_to = (member + 1) % size,
                           .send_block = out,
                           .recv_from = (member - 1 + size) % size,
                           .recv_block = (out - 1 + size) % size,
                           .add = reduce};
}

/* On several nodes every step has messages that cross, one from each node. */
static hp_collective_load ring_load(int32_t size, int32_t per_node) {
    const int32_t steps = ring_steps(size);
    const double block = 1.0 / size, sent = steps * block, added = (size - 1) * block;
    if (per_node >= size) return (hp_collective_load){.inside = {steps, sent}, .added = added};
    return (hp_collective_load){.across = {steps, sent}, .added = added, .crossing = 1};
}

const hp_collective_ops hp_collective_ring = {
    .name = "ring", .blocks = ring_blocks, .steps = ring_steps, .step = ring_step, .load = ring_load};
