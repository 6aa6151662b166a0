/* kernel_math.h - functions of CUDA's device code that a C library lacks. Compiled without contraction:
 * multiply-adds are fused only where the kernel calls fmaf. */
#ifndef HP_TESTS_KERNEL_MATH_H
#define HP_TESTS_KERNEL_MATH_H

#include "tests/standin/kernel_types.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

template <typename T> inline T min(T a, T b) {
    return b < a ? b : a;
}

template <typename T> inline T max(T a, T b) {
    return a < b ? b : a;
}

inline float min(float a, float b) {
    return fminf(a, b);
}

inline float max(float a, float b) {
    return fmaxf(a, b);
}

inline float rsqrtf(float x) {
    return 1 / sqrtf(x);
}

inline double rsqrt(double x) {
    return 1 / sqrt(x);
}

/* Approximations on a GPU; accurate here, hence within their error. */
inline float __expf(float x) {
    return expf(x);
}

inline float __logf(float x) {
    return logf(x);
}

inline float __fdividef(float a, float b) {
    return a / b;
}

/* Rounded once, never contracted. */
inline float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}

inline float __fadd_rn(float a, float b) {
    return a + b;
}

inline float __fmul_rn(float a, float b) {
    return a * b;
}

inline float __fdiv_rn(float a, float b) {
    return a / b;
}

inline float __fsqrt_rn(float a) {
    return sqrtf(a);
}

inline double __dadd_rn(double a, double b) {
    return a + b;
}

inline double __dmul_rn(double a, double b) {
    return a * b;
}

inline float __double2float_rn(double x) {
    return (float)x;
}

inline float __int2float_rn(int x) {
    return (float)x;
}

/* Saturates beyond the integers; NaN becomes 0. */
inline int __float2int_rn(float x) {
    if (isnan(x)) return 0;
    if (x >= 2147483648.0f) return INT32_MAX;
    return x <= -2147483648.0f ? INT32_MIN : (int)rintf(x);
}

inline int __float_as_int(float x) {
    return standin_bits<int>(x);
}

inline unsigned __float_as_uint(float x) {
    return standin_bits<unsigned>(x);
}

inline float __int_as_float(int x) {
    return standin_bits<float>(x);
}

inline float __uint_as_float(unsigned x) {
    return standin_bits<float>(x);
}

inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((uint64_t)a * b >> 32);
}

inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}

inline int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}

template <typename T> inline T __ldg(const T *at) {
    return *at;
}

#endif
