/* comm_reduce.c - one loop per type and reduction. */
#include "exec/comm/comm_reduce.h"

#include "exec/base/half.h"

#include <math.h>

typedef void reduce_fn(void *dst, const void *src, int64_t n);

/* Signed integers wrap around, so they are added as unsigned. +0 is larger than -0, so that the result does
 * not depend on the order. */
#define WRAP(type, a, b)      ((type)((uint64_t)(a) + (uint64_t)(b)))
#define PLUS(type, a, b)      ((type)((a) + (b)))
#define LESS(type, a, b)      ((a) < (b) ? (a) : (b))
#define MORE(type, a, b)      ((a) > (b) ? (a) : (b))
#define REAL_LESS(type, a, b) real_less(a, b)
#define REAL_MORE(type, a, b) real_more(a, b)

static inline double real_less(double a, double b) {
    if (isnan(a) || isnan(b)) return (double)NAN;
    return a < b || (a <= b && signbit(a)) ? a : b;
}

static inline double real_more(double a, double b) {
    if (isnan(a) || isnan(b)) return (double)NAN;
    return a > b || (a >= b && !signbit(a)) ? a : b;
}

#define SAME(x) (x)
#define LOOP(name, stored, type, from, to, combine)                                                          \
    static void name(void *dst, const void *src, int64_t n) {                                                \
        stored *restrict d = dst;                                                                            \
        const stored *restrict s = src;                                                                      \
        for (int64_t i = 0; i < n; i++) d[i] = (stored)to(combine(type, from(d[i]), from(s[i])));            \
    }
#define ROUND_F16(v)  to_f16((float)(v))
#define ROUND_BF16(v) to_bf16((float)(v))
#define REALS(suffix, stored, type, from, to)                                                                \
    LOOP(sum_##suffix, stored, type, from, to, PLUS)                                                         \
    LOOP(min_##suffix, stored, type, from, to, REAL_LESS)                                                    \
    LOOP(max_##suffix, stored, type, from, to, REAL_MORE)
#define INTEGERS(suffix, type)                                                                               \
    LOOP(sum_##suffix, type, type, SAME, SAME, WRAP)                                                         \
    LOOP(min_##suffix, type, type, SAME, SAME, LESS)                                                         \
    LOOP(max_##suffix, type, type, SAME, SAME, MORE)

REALS(f32, float, float, SAME, SAME)
REALS(f64, double, double, SAME, SAME)
REALS(bf16, uint16_t, float, from_bf16, ROUND_BF16)
REALS(f16, uint16_t, float, from_f16, ROUND_F16)
INTEGERS(i32, int32_t)
INTEGERS(u8, uint8_t)
INTEGERS(i8, int8_t)

#define ROW(suffix)                                                                                          \
    { sum_##suffix, min_##suffix, max_##suffix, sum_##suffix }
static reduce_fn *const reduces[HP_DTYPES][HP_REDUCTIONS] = {
    [HP_F32] = ROW(f32),   [HP_F64] = ROW(f64), [HP_I32] = ROW(i32), [HP_U8] = ROW(u8),
    [HP_BF16] = ROW(bf16), [HP_F16] = ROW(f16), [HP_I8] = ROW(i8)};

void hp_reduce(hp_reduction r, hp_dtype t, void *dst, const void *src, int64_t n) {
    reduces[t][r](dst, src, n);
}

typedef void divide_fn(void *data, int64_t n, int32_t members);

#define DIVIDE(suffix, stored, type, from, to)                                                               \
    static void divide_##suffix(void *data, int64_t n, int32_t members) {                                    \
        stored *d = data;                                                                                    \
        for (int64_t i = 0; i < n; i++) d[i] = (stored)to(from(d[i]) / (type)members);                       \
    }
DIVIDE(f32, float, float, SAME, SAME)
DIVIDE(f64, double, double, SAME, SAME)
DIVIDE(bf16, uint16_t, float, from_bf16, ROUND_BF16)
DIVIDE(f16, uint16_t, float, from_f16, ROUND_F16)
DIVIDE(i32, int32_t, int32_t, SAME, SAME)
DIVIDE(u8, uint8_t, int32_t, SAME, SAME)
DIVIDE(i8, int8_t, int32_t, SAME, SAME)

void hp_reduce_divide(hp_dtype t, void *data, int64_t n, int32_t members) {
    static divide_fn *const divides[HP_DTYPES] = {
        [HP_F32] = divide_f32,   [HP_F64] = divide_f64, [HP_I32] = divide_i32, [HP_U8] = divide_u8,
        [HP_BF16] = divide_bf16, [HP_F16] = divide_f16, [HP_I8] = divide_i8};
    divides[t](data, n, members);
}
