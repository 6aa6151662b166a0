/* algorithms.h - internals of collectives: what each algorithm's file defines, and helpers that several
 * share. */
#ifndef HP_ALGORITHMS_H
#define HP_ALGORITHMS_H

#include "plan/collectives/collective.h"

#define ALGORITHM(ID, id) extern const hp_algorithm_ops hp_collective_##id;
#include "plan/collectives/algorithms.def"

/* Bits for hp_algorithm_ops.does and .even. */
#define HP_DOES(ID) (1u << HP_COLLECTIVE_##ID)

/* The largest k with 2^k <= n. */
static inline int32_t hp_log2_floor(int32_t n) {
    int32_t k = 0;
    while ((2 << k) <= n) k++;
    return k;
}
/* The smallest k with 2^k >= n. */
static inline int32_t hp_log2_ceil(int32_t n) {
    return n > 1 ? 1 + hp_log2_floor(n - 1) : 0;
}
static inline bool hp_power_of_two(int32_t n) {
    return (n & (n - 1)) == 0;
}

/* Member or block i modulo n; i >= -n. */
static inline int32_t hp_around(int32_t i, int32_t n) {
    return (i + n) % n;
}

/* Blocks [first, first + n), modulo their number. */
static inline hp_block_range hp_blocks(int32_t first, int32_t n) {
    return (hp_block_range){.first = first, .span = n, .width = n, .stride = n > 0 ? n : 1};
}
static inline int32_t hp_blocks_in(const hp_block_range *r) {
    const int32_t rest = r->span % r->stride;
    return r->span / r->stride * r->width + (rest < r->width ? rest : r->width);
}

static inline hp_block_step hp_idle(void) {
    return (hp_block_step){.send_to = -1, .recv_from = -1};
}

/* Members at distance d, a power of two, exchange the d blocks that each holds, aligned to a multiple of
 * d. */
static inline hp_block_step hp_exchange_gathered(int32_t member, int32_t d) {
    const int32_t peer = member ^ d;
    return (hp_block_step){.send_to = peer,
                           .recv_from = peer,
                           .send = hp_blocks(member / d * d, d),
                           .recv = hp_blocks(peer / d * d, d)};
}

/* One block, for data that is not split. */
int32_t hp_one_block(const hp_collective_case *c);

/* Load of identical rounds, each of which crosses nodes if there are several. */
hp_collective_load hp_load_of_rounds(const hp_collective_case *c, int32_t rounds, double sent,
                                     int32_t crossing);

/* Steps among a power of two of members, extended to any number: collective_fold.c. */
typedef hp_block_step (*hp_power_step)(int32_t size, int32_t member, int32_t step);
int32_t hp_folded_steps(int32_t size, int32_t steps);
hp_block_step hp_folded_step(const hp_collective_case *c, int32_t member, int32_t step, int32_t steps,
                             int32_t blocks, hp_power_step inner);

#endif
