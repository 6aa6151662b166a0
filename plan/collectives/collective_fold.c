/* collective_fold.c - extends algorithms for 2^k members to any number. Members from 2^k on first give their
 * data to member - 2^k and receive the result at the end (Thakur, Rabenseifner, Gropp 2005, section 4.5). */
#include "plan/collectives/algorithms.h"

int32_t hp_folded_steps(int32_t size, int32_t steps) {
    return hp_power_of_two(size) ? steps : steps + 2;
}

static hp_block_step message(int32_t send_to, int32_t recv_from, bool add, int32_t blocks) {
    return (hp_block_step){.send_to = send_to,
                           .recv_from = recv_from,
                           .send = hp_blocks(0, blocks),
                           .recv = hp_blocks(0, blocks),
                           .add = add};
}

hp_block_step hp_folded_step(const hp_collective_case *c, int32_t member, int32_t step, int32_t steps,
                             int32_t blocks, hp_power_step inner) {
    const int32_t half = 1 << hp_log2_floor(c->size), in = half == c->size ? 0 : 1;
    const bool out = step == in + steps;
    if (step >= in && !out) return member < half ? inner(half, member, step - in) : hp_idle();
    if (member >= half) return message(out ? -1 : member - half, out ? member - half : -1, false, blocks);
    if (member + half >= c->size) return hp_idle();
    return message(out ? member + half : -1, out ? -1 : member + half, !out, blocks);
}
