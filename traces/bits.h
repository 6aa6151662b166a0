/* bits.h - do two runs of a plan have the same bits? Compares their losses, and the hashes of the weights
 * after each step, which run --deterministic records as the counter weight_bits.
 *
 * A value is what · 2^32 + the lower 32 bits of the XXH3 of the rank's part: an integer below 2^53. what: a
 * parameter of the network; n_param: all of the rank's weights; n_param + 1: its running statistics, where
 * there is no room for each. Two different parts have equal hashes once in 2^32. */
#ifndef HP_BITS_H
#define HP_BITS_H

#include "traces/query.h"

enum { HP_BITS_MOST = 1 << 21 }; /* exceeds all indices of parameters */

static inline double hp_bits_value(int64_t what, uint64_t hash) {
    HP_ASSERT(what >= 0 && what < HP_BITS_MOST);
    return (double)what * 0x1p32 + (double)(hash & 0xffffffff);
}
static inline int64_t hp_bits_what(double value) {
    return value >= 0 && value < (double)HP_BITS_MOST * 0x1p32 ? (int64_t)(value * 0x1p-32) : -1;
}

typedef struct hp_bits {
    int32_t steps;   /* steps that both have recorded */
    bool same;       /* equal in all of these */
    int32_t iter;    /* first step that differs, from 0 */
    bool loss;       /* the loss differs; else the weights after it */
    int64_t what;    /* first part of the weights that differs */
    int32_t rank;    /* lowest rank with that difference */
    int32_t only[2]; /* steps that only one of them has */
} hp_bits;

/* Compares the newest executed runs of two files. Errors: HP_EDATA (no run, no hashes, no step in common). */
hp_status hp_bits_compare(hp_arena *arena, hp_db *a, hp_db *b, hp_bits *out, hp_error *err);

#endif
