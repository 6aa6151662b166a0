/* dataset_shuffle.h - the order of an epoch as a pure function: every rank finds any
 * sample without a table. */
#ifndef HP_DATASET_SHUFFLE_H
#define HP_DATASET_SHUFFLE_H

#include <stdint.h>

/* Sample at `position` of the epoch, 0 <= position < count; a permutation of [0, count) for fixed (seed,
 * epoch). Cost: a few dozen Philox calls, no memory. Source: a Feistel network (Luby, Rackoff 1988) on the
 * next power of two, iterated until the value is below count (Black, Rogaway, "Ciphers with arbitrary finite
 * domains", CT-RSA 2002). */
int64_t hp_shuffle(uint64_t seed, int64_t epoch, int64_t position, int64_t count);

#endif
