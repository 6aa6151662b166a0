/* loops_elements.h - elements as they are stored to the numbers that are computed with, and back: rows of
 * them. */
#ifndef HP_LOOPS_ELEMENTS_H
#define HP_LOOPS_ELEMENTS_H

/* --- IEEE 754 binary16 and bfloat16 --- */

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

/* The exponent of a binary16 is 112 less than a binary32's; subnormal numbers come right by the product. */
static inline float from_f16(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    const uint32_t finite = bits_of(as_float(rest) * 0x1p112f), special = rest | 0x7f800000;
    return as_float(sign | (rest >= 0x0f800000 ? special : finite));
}

/* To the nearest, halves to even: below 2^-14 by adding 1/2, whose last place is that of a subnormal. */
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

/* --- rows --- */

static void load_f16(real *to, const uint16_t *x, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) to[i] = (real)from_f16(x[i]);
}

static void load_bf16(real *to, const uint16_t *x, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) to[i] = (real)from_bf16(x[i]);
}

/* The nearest byte, halves to even: at 2^23 and a half the last place of a float is one. */
static inline uint8_t saturated(float v, float lo, float hi, int32_t zero) {
    v = v > lo ? v : lo; /* a NaN becomes the smallest */
    v = v < hi ? v : hi;
    return (uint8_t)((int32_t)(v + 0x1.8p23f - 0x1.8p23f) + zero); /* lo, hi: bytes from zero */
}

static void store_bytes(uint8_t *y, const real *from, int64_t n, const hp_lens *l) {
    const float inverse = l->inverse, lo = (float)-l->zero, hi = (float)(255 - l->zero);
    const int32_t zero = l->zero;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = saturated((float)from[i] * inverse, lo, hi, zero);
}

static void store_f16(uint16_t *y, const real *from, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = to_f16((float)from[i]);
}

static void store_bf16(uint16_t *y, const real *from, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = to_bf16((float)from[i]);
}

static void store_f32(float *y, const real *from, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = (float)from[i];
}

static void put(void *y, int64_t at, const real *from, int64_t n, const hp_lens *l) {
    if (l->dtype == REAL_DTYPE && (real *)y + at != from)
        memcpy((real *)y + at, from, (size_t)n * sizeof *from);
    if (l->dtype == HP_U8) store_bytes((uint8_t *)y + at, from, n, l);
    if (l->dtype == HP_F16) store_f16((uint16_t *)y + at, from, n);
    if (l->dtype == HP_BF16) store_bf16((uint16_t *)y + at, from, n);
    if (l->dtype == HP_F32 && REAL_DTYPE != HP_F32) store_f32((float *)y + at, from, n);
}

#endif
