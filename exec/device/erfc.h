/* erfc.h - exp of non-positive numbers, and erfc, in float32 with only sums, products and one quotient. Such
 * loops are vectorised, and give the same bits on every processor and GPU where nothing is fused. */
#ifndef HP_ERFC_H
#define HP_ERFC_H

#include "exec/device/host_device.h"

#include <stdint.h>
#include <string.h>

/* exp for numbers or vectors (Moshier, Cephes: expf): x = n log(2) + r, n integer; exp(r) by a polynomial. */
#define HP_EXP_ROUND      12582912.0f /* 1.5 * 2^23: x log2(e) + this is an integer whose low bits are n */
#define HP_EXP_LOG2_E     1.44269504088896341f
#define HP_EXP_REST(x, n) (((x) - (n)*0.693359375f) + (n)*2.12194440e-4f)
/* clang-format off */
#define HP_EXP_OF_REST(r) \
    ((((((1.9875691500e-4f * (r) + 1.3981999507e-3f) * (r) + 8.3334519073e-3f) * (r) + 4.1665795894e-2f) * (r) \
       + 1.6666665459e-1f) * (r) + 5.0000001201e-1f) * (r) * (r) + (r) + 1)
/* clang-format on */
#define HP_EXP_LEAST -87.0f      /* smallest x: below, exp would be subnormal */
#define HP_EXP_ONE   0x3f800000u /* bits of 1.0f; adding n << 23 gives 2^n */

/* exp for x <= 0, to about 2 units in the last place; at least exp(HP_EXP_LEAST). */
HP_HOST_DEVICE float hp_exp_f32(float x) {
    x = x < HP_EXP_LEAST ? HP_EXP_LEAST : x;
    const float t = x * HP_EXP_LOG2_E + HP_EXP_ROUND, n = t - HP_EXP_ROUND, r = HP_EXP_REST(x, n);
    uint32_t power;
    float scale;
    memcpy(&power, &t, sizeof power);
    power = (power << 23) + HP_EXP_ONE;
    memcpy(&scale, &power, sizeof scale);
    return HP_EXP_OF_REST(r) * scale;
}

/* erfc: t exp(-z^2 + a polynomial in t), t = 1 / (1 + z / 2), z = |x|. Relative error at most 1.2e-7 before
 * rounding (Press and others, Numerical Recipes in C, 6.2: erfcc). */
HP_HOST_DEVICE float hp_erfc_f32(float x) {
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
