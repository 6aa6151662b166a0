/* shuffle.h - the order of an epoch as a pure function: every rank knows where any sample is without a table.
 */
#ifndef HP_SHUFFLE_H
#define HP_SHUFFLE_H

#include <stdint.h>

/* Sample at `position` of the epoch; for fixed (seed, epoch) a permutation of [0, count). 0 <= position <
 * count. Cost: a few dozen Philox calls, no memory. Source: a Feistel network (Luby, Rackoff 1988) on the
 * next power of two, walked until it falls below count (Black, Rogaway, "Ciphers with arbitrary finite
 * domains", CT-RSA 2002). */
int64_t hp_shuffle(uint64_t seed, int64_t epoch, int64_t position, int64_t count);

#endif
