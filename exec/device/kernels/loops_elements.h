/* loops_elements.h - elements as they are stored to the numbers that are computed with, and back: rows of
 * them. */
#ifndef HP_LOOPS_ELEMENTS_H
#define HP_LOOPS_ELEMENTS_H

#include "exec/base/half.h"

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

static void store_bytes(uint8_t *y, const real *from, int64_t n, const hp_qparams *l) {
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

static void put(void *y, int64_t at, const real *from, int64_t n, const hp_qparams *l) {
    if (l->dtype == REAL_DTYPE && (real *)y + at != from)
        memcpy((real *)y + at, from, (size_t)n * sizeof *from);
    if (l->dtype == HP_U8) store_bytes((uint8_t *)y + at, from, n, l);
    if (l->dtype == HP_F16) store_f16((uint16_t *)y + at, from, n);
    if (l->dtype == HP_BF16) store_bf16((uint16_t *)y + at, from, n);
    if (l->dtype == HP_F32 && REAL_DTYPE != HP_F32) store_f32((float *)y + at, from, n);
}

#endif
