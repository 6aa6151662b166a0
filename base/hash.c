/* hash.c - XXH3 through libxxhash. */
#include "base/hash.h"

#include <stdio.h>
#include <xxhash.h>

hp_hash hp_hash_bytes(const void *data, size_t size) {
    const XXH128_hash_t h = XXH3_128bits(data, size);
    hp_hash out;
    snprintf(out.hex, sizeof out.hex, "%016llx%016llx", (unsigned long long)h.high64,
             (unsigned long long)h.low64);
    return out;
}

uint64_t hp_hash64(const void *data, size_t size, uint64_t seed) {
    return XXH3_64bits_withSeed(data, size, seed);
}
