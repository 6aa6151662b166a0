/* half.h - conversions of IEEE binary16, bfloat16 and tf32 to and from float32, rounding to nearest even. */
#ifndef HP_HALF_H
#define HP_HALF_H

#include <stdint.h>
#include <string.h>

static inline float as_float(uint32_t bits) {
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline uint32_t bits_of(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* A binary16's exponent bias is 112 less than a binary32's; the multiplication also handles subnormal
 * numbers. */
static inline float from_f16(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    const uint32_t finite = bits_of(as_float(rest) * 0x1p112f), special = rest | 0x7f800000;
    return as_float(sign | (rest >= 0x0f800000 ? special : finite));
}

/* Rounds to nearest even. Below 2^-14, adding 1/2 aligns the last place with that of a subnormal. */
static inline uint16_t to_f16(float v) {
    const uint32_t sign = bits_of(v) >> 16 & 0x8000, a = bits_of(v) & 0x7fffffff;
    const uint32_t small = bits_of(as_float(a) + 0.5f) - 0x3f000000,
                   normal = (a - (112u << 23) + 0xfff + (a >> 13 & 1)) >> 13;
    const uint32_t finite = a < 0x38800000 ? small : a >= 0x477ff000 ? 0x7c00 : normal;
    return (uint16_t)(sign | (a > 0x7f800000 ? 0x7e00 : finite));
}

static inline float from_bf16(uint16_t h) {
    return as_float((uint32_t)h << 16);
}

static inline uint16_t to_bf16(float v) {
    const uint32_t a = bits_of(v), nearest = (a + 0x7fff + (a >> 16 & 1)) >> 16;
    return (uint16_t)((a & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : nearest);
}

/* Rounds to 10 bits of mantissa. */
static inline float to_tf32(float v) {
    const uint32_t a = bits_of(v);
    return (a & 0x7fffffff) >= 0x7f800000 ? v : as_float((a + 0xfff + (a >> 13 & 1)) & ~0x1fffu);
}

#endif
