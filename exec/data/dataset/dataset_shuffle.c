/* dataset_shuffle.c - a keyed permutation of [0, count) by Feistel rounds and cycle walking; see
 * dataset_shuffle.h. */
#include "exec/data/dataset/dataset_shuffle.h"

#include "exec/base/streams.h"
#include "base/rng.h"
#include "base/status.h"

/* Half-rounds. Four make a pseudo-random permutation for wide halves; narrow halves, as here, need more. */
enum { ROUNDS = 8 };

/* Each half-round adds a function of one half to the other, which is invertible for any function, so the
 * whole is a permutation. */
static uint64_t feistel(uint64_t seed, uint64_t stream, int low_bits, int high_bits, uint64_t x) {
    uint64_t low = x & (((uint64_t)1 << low_bits) - 1), high = x >> low_bits;
    for (uint64_t round = 0; round < ROUNDS; round += 2) {
        low ^= hp_philox(seed, stream | round, high).v[0] & (((uint64_t)1 << low_bits) - 1);
        high ^= hp_philox(seed, stream | (round + 1), low).v[0] & (((uint64_t)1 << high_bits) - 1);
    }
    return high << low_bits | low;
}

int64_t hp_shuffle(uint64_t seed, int64_t epoch, int64_t position, int64_t count) {
    HP_ASSERT(position >= 0 && position < count && count <= (int64_t)1 << 62);
    int bits = 2;
    while (((int64_t)1 << bits) < count) bits++;
    const uint64_t stream = HP_STREAM_SHUFFLE | (uint64_t)epoch << 4;
    uint64_t x = (uint64_t)position;
    do x = feistel(seed, stream, bits / 2, bits - bits / 2, x);
    while (x >= (uint64_t)count);
    return (int64_t)x;
}
