/* erfc.h - exp of what is not positive, and erfc, in float32 by sums, products and a quotient alone: loops of them are vectorised, and
 * give the same bits on every processor and GPU where nothing is fused. */
#ifndef HP_ERFC_H
#define HP_ERFC_H

#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__)
#define HP_ERFC_INLINE static __host__ __device__ inline
#else
#define HP_ERFC_INLINE static inline
#endif

/* x <= 0; to about 2 units in the last place, nothing below exp(-87). 2^n times a polynomial in the rest (Moshier, Cephes: expf). */
HP_ERFC_INLINE float hp_exp_f32(float x) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: rounds to whole numbers */
    x = x < -87.0f ? -87.0f : x;
    const float t = x * 1.44269504088896341f + magic, n = t - magic;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f, scale;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1;
    uint32_t power;
    memcpy(&power, &t, sizeof power); /* whose low bits are n */
    power = (power << 23) + 0x3f800000u;
    memcpy(&scale, &power, sizeof scale);
    return p * scale;
}

/* t exp(-z^2 + a polynomial in t), t = 1 / (1 + z / 2), z = |x|: off by 1.2e-7 of itself at most, before rounding (Press and others,
 * Numerical Recipes in C, 6.2: erfcc). */
HP_ERFC_INLINE float hp_erfc_f32(float x) {
    const float z = x < 0 ? -x : x, t = 1 / (1 + 0.5f * z);
    float p = 0.17087277f;
    p = p * t - 0.82215223f;
    p = p * t + 1.48851587f;
    p = p * t - 1.13520398f;
    p = p * t + 0.27886807f;
    p = p * t - 0.18628806f;
    p = p * t + 0.09678418f;
    p = p * t + 0.37409196f;
    p = p * t + 1.00002368f;
    p = p * t - 1.26551223f;
    const float e = t * hp_exp_f32(p - z * z);
    return x < 0 ? 2 - e : e;
}

#endif
