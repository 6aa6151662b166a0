/* rng.h - counter-based random numbers: a pure function of (seed, stream, counter), so that every element,
 * sample and mask gets the same value under every strategy. Philox4x32-10 (Salmon et al., SC 2011). */
#ifndef HP_RNG_H
#define HP_RNG_H

#include <stdint.h>

/* Four independent 32-bit words for a 64-bit key and a 128-bit counter given as two halves. */
typedef struct hp_rng4 {
    uint32_t v[4];
} hp_rng4;

/* Four random words for `key` and the counter (hi, lo). */
hp_rng4 hp_philox(uint64_t key, uint64_t hi, uint64_t lo);
/* Computes the n counters starting at (hi, lo); takes half the time of n single calls. */
void hp_philox_run(uint64_t key, uint64_t hi, uint64_t lo, int64_t n, hp_rng4 *out);

double hp_rng_uniform(uint64_t seed, uint64_t stream, uint64_t counter); /* in [0, 1), 53 bits */
double hp_rng_normal(uint64_t seed, uint64_t stream, uint64_t counter);  /* mean 0, variance 1 (Box-Muller) */
uint64_t hp_rng_below(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t n); /* in [0, n) */

#endif
