/* rng.c - Philox4x32-10, constants from Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1,
 * 2, 3". */
#include "plan/base/rng.h"

#include <math.h>

hp_rng4 hp_philox(uint64_t key, uint64_t hi, uint64_t lo) {
    uint32_t c0 = (uint32_t)lo, c1 = (uint32_t)(lo >> 32), c2 = (uint32_t)hi, c3 = (uint32_t)(hi >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (hp_rng4){{c0, c1, c2, c3}};
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
