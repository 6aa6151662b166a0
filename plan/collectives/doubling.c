/* doubling.c - all-reduce by recursive doubling: in each of log2 p steps pairs exchange everything they have
 * (Thakur, Rabenseifner, Gropp 2005, section 4). The fewest steps; for short messages.
 *
 * Beyond a power of two, 2^k, members from 2^k on hand their data to member - 2^k first, and get the sum from
 * it at the end. */
#include "plan/collectives/algorithms.h"

static int32_t log2_floor(int32_t n) {
    int32_t k = 0;
    while ((2 << k) <= n) k++;
    return k;
}

static int32_t doubling_blocks(int32_t size) {
    (void)size;
    return 1;
}

static int32_t doubling_steps(int32_t size) {
    const int32_t k = log2_floor(size);
    return size == 1 << k ? k : k + 2;
}

static hp_block_step whole(int32_t send_to, int32_t recv_from, bool add) {
    return (hp_block_step){.send_to = send_to, .recv_from = recv_from, .add = add};
}

static hp_block_step idle(void) {
    return whole(-1, -1, false);
}

static hp_block_step fold_in(int32_t size, int32_t member, int32_t half) {
    if (member >= half) return whole(member - half, -1, false);
    return member + half < size ? whole(-1, member + half, true) : idle();
}

static hp_block_step fold_out(int32_t size, int32_t member, int32_t half) {
    if (member >= half) return whole(-1, member - half, false);
    return member + half < size ? whole(member + half, -1, false) : idle();
}

static hp_block_step doubling_step(int32_t size, int32_t member, int32_t step) {
    const int32_t k = log2_floor(size), half = 1 << k, fold = size == half ? 0 : 1;
    if (fold && step == 0) return fold_in(size, member, half);
    if (fold && step == k + 1) return fold_out(size, member, half);
    if (member >= half) return idle();
    const int32_t peer = member ^ (1 << (step - fold));
    return whole(peer, peer, true);
}

/* Members exchange at a distance of 1, 2, 4, ...: inside their nodes as long as no pair lies across the end of
 * a node. From the first step that crosses on, all members of a node may cross at once. */
static hp_collective_load doubling_load(int32_t size, int32_t per_node) {
    const int32_t k = log2_floor(size), steps = doubling_steps(size), adds = steps > k ? k + 1 : k;
    int32_t inside = 0;
    if (per_node >= size) return (hp_collective_load){.inside = {steps, steps}, .added = adds};
    while (inside < k && (1 << k <= per_node || per_node % (2 << inside) == 0)) inside++;
    const int32_t across = steps - inside;
    return (hp_collective_load){
        .inside = {inside, inside}, .across = {across, across}, .added = adds, .crossing = per_node};
}

const hp_collective_ops hp_collective_doubling = {.name = "doubling",
                                                  .blocks = doubling_blocks,
                                                  .steps = doubling_steps,
                                                  .step = doubling_step,
                                                  .load = doubling_load};
