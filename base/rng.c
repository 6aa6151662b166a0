/* rng.c - Philox4x32-10, constants from Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1,
 * 2, 3". */
#include "base/rng.h"

#include <math.h>

enum { LANES = 4 /* counters computed together; fills the vector registers of any processor */ };

/* Computes `lanes` consecutive counters. `lanes` is a compile-time constant, so each step of the rounds
 * becomes a vector operation. */
static inline __attribute__((always_inline)) void philox(uint64_t key, uint64_t hi, uint64_t lo, int lanes,
                                                         hp_rng4 *out) {
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int l = 0; l < lanes; l++) {
        const uint64_t at = lo + (uint64_t)l;
        c0[l] = (uint32_t)at, c1[l] = (uint32_t)(at >> 32), c2[l] = (uint32_t)hi,
        c3[l] = (uint32_t)(hi >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int l = 0; l < lanes; l++) {
            const uint64_t p0 = (uint64_t)0xD2511F53u * c0[l], p1 = (uint64_t)0xCD9E8D57u * c2[l];
            const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1[l] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3[l] ^ k1;
            c1[l] = (uint32_t)p1;
            c3[l] = (uint32_t)p0;
            c0[l] = n0;
            c2[l] = n2;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int l = 0; l < lanes; l++) out[l] = (hp_rng4){{c0[l], c1[l], c2[l], c3[l]}};
}

hp_rng4 hp_philox(uint64_t key, uint64_t hi, uint64_t lo) {
    hp_rng4 r;
    philox(key, hi, lo, 1, &r);
    return r;
}

void hp_philox_run(uint64_t key, uint64_t hi, uint64_t lo, int64_t n, hp_rng4 *out) {
    for (; n >= LANES; n -= LANES, lo += LANES, out += LANES) philox(key, hi, lo, LANES, out);
    for (; n > 0; n--) *out++ = hp_philox(key, hi, lo++);
}

static double to_unit(uint32_t high, uint32_t low) {
    return (double)((((uint64_t)high << 32) | low) >> 11) * 0x1p-53;
}

double hp_rng_uniform(uint64_t seed, uint64_t stream, uint64_t counter) {
    const hp_rng4 r = hp_philox(seed, stream, counter);
    return to_unit(r.v[0], r.v[1]);
}

double hp_rng_normal(uint64_t seed, uint64_t stream, uint64_t counter) {
    const hp_rng4 r = hp_philox(seed, stream, counter);
    const double u = 1.0 - to_unit(r.v[0], r.v[1]), v = to_unit(r.v[2], r.v[3]);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586476925 * v);
}

uint64_t hp_rng_below(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t n) {
    const hp_rng4 r = hp_philox(seed, stream, counter);
    const uint64_t x = ((uint64_t)r.v[0] << 32) | r.v[1];
    return (uint64_t)(((unsigned __int128)x * n) >> 64);
}
