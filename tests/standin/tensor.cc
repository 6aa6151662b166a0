/* tensor.cc - the products of a tensor core, and the rounding of 16-bit floats. */
#include "exec/cuda/runtime/mma.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Every lane shows its fragments and computes its own four sums. */
void hp_mma_u8s8_16x8x32(int32_t d[4], const uint32_t a[4], const uint32_t b[2]) {
    const int lane = standin_lane(), g = lane / 4, t = lane % 4;
    const uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    const unsigned char *slots = standin_show(mine, sizeof mine, 0xffffffffu);
    for (int i = 0; i < 4; i++) {
        uint32_t sum = (uint32_t)d[i];
        for (int k = 0; k < 32; k++) {
            const int holder = k % 16 / 4, half = k / 16, byte = k % 4;
            const unsigned char *row = slots + (4 * g + holder) * STANDIN_SLOT;
            const unsigned char *column = slots + (4 * (2 * t + i % 2) + holder) * STANDIN_SLOT;
            const uint8_t x = row[4 * (2 * half + i / 2) + byte];
            const int8_t w = (int8_t)column[16 + 4 * half + byte];
            sum += (uint32_t)(x * w);
        }
        d[i] = (int32_t)sum;
    }
}

/* --- 16-bit floats --- */

template <typename T> static float half_of(const unsigned char *at, int i) {
    T v;
    memcpy(&v, at + 2 * i, sizeof v);
    return v;
}

template <typename T> static void product_of(float d[4], const uint32_t a[4], const uint32_t b[2]) {
    const int lane = standin_lane(), g = lane / 4, t = lane % 4;
    const uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    const unsigned char *slots = standin_show(mine, sizeof mine, 0xffffffffu);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 16; k++) {
            const int holder = k % 8 / 2, half = k / 8;
            const unsigned char *row = slots + (4 * g + holder) * STANDIN_SLOT;
            const unsigned char *column = slots + (4 * (2 * t + i % 2) + holder) * STANDIN_SLOT;
            d[i] +=
                half_of<T>(row + 4 * (2 * half + i / 2), k % 2) * half_of<T>(column + 16 + 4 * half, k % 2);
        }
}

void hp_mma_16x8x16(float d[4], const uint32_t a[4], const uint32_t b[2], __nv_bfloat16) {
    product_of<__nv_bfloat16>(d, a, b);
}

void hp_mma_16x8x16(float d[4], const uint32_t a[4], const uint32_t b[2], __half) {
    product_of<__half>(d, a, b);
}

/* Row r of matrix m is at the address from lane 8m + r. */
static const uint16_t *row_of_matrix(const unsigned char *slots, int m, int r) {
    const uint16_t *at;
    memcpy(&at, slots + (8 * m + r) * STANDIN_SLOT, sizeof at);
    return at;
}

static const unsigned char *shown_rows(const void *row) {
    if ((uintptr_t)row % 16 != 0) {
        fprintf(stderr, "the stand-in for a GPU: a row of 8 elements that is not aligned to its 16 bytes\n");
        abort();
    }
    return standin_show(&row, sizeof row, 0xffffffffu);
}

void hp_load_8x8(uint32_t r[4], const void *row) {
    const int g = standin_lane() / 4, t = standin_lane() % 4;
    const unsigned char *slots = shown_rows(row);
    for (int m = 0; m < 4; m++) memcpy(&r[m], row_of_matrix(slots, m, g) + 2 * t, sizeof r[m]);
}

void hp_load_8x8_transposed(uint32_t r[4], const void *row) {
    const int g = standin_lane() / 4, t = standin_lane() % 4;
    const unsigned char *slots = shown_rows(row);
    for (int m = 0; m < 4; m++)
        r[m] = row_of_matrix(slots, m, 2 * t)[g] | (uint32_t)row_of_matrix(slots, m, 2 * t + 1)[g] << 16;
}

float standin_from_f16(uint16_t h) {
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const float sign = h >> 15 ? -1.0f : 1.0f;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexpf((float)(1024 + fraction), exponent - 25) : ldexpf((float)fraction, -24));
}

/* Rounds to the nearest multiple of the exponent's step; from 65520 on, infinity. */
uint16_t standin_to_f16(float f) {
    const uint16_t sign = signbit(f) ? 0x8000 : 0;
    const float size = fabsf(f);
    int exponent;
    if (isnan(f)) return 0x7fff;
    if (size >= 65520.0f) return (uint16_t)(sign | 0x7c00);
    if (size < 0x1p-14f) return (uint16_t)(sign | (int)rintf(ldexpf(size, 24)));
    frexpf(size, &exponent);                                    /* size < 2^exponent */
    const int digits = (int)rintf(ldexpf(size, 11 - exponent)); /* 1024 .. 2048; 2048 carries over */
    return (uint16_t)(sign | (((exponent + 13) << 10) + digits));
}
