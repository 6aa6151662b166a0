/* types.c - ONNX's element types: how to read and write one element. */
#include "networks/onnx/onnx_inside.h"

#include <math.h>
#include <string.h>

/* Saturates: converting an out-of-range double is undefined behaviour. */
static int64_t to_integer(double v) {
    if (!(v > -9.2e18)) return isnan(v) ? 0 : INT64_MIN;
    return v < 9.2e18 ? (int64_t)v : INT64_MAX;
}

#define WHOLE(name, type)                                                                                    \
    static double name##_real(const void *data, int64_t i) {                                                 \
        return (double)((const type *)data)[i];                                                              \
    }                                                                                                        \
    static int64_t name##_integer(const void *data, int64_t i) {                                             \
        return (int64_t)((const type *)data)[i];                                                             \
    }                                                                                                        \
    static void name##_put(void *data, int64_t i, double real, int64_t integer) {                            \
        (void)real;                                                                                          \
        ((type *)data)[i] = (type)integer;                                                                   \
    }
WHOLE(uint8, uint8_t)
WHOLE(int8, int8_t)
WHOLE(uint16, uint16_t)
WHOLE(int16, int16_t)
WHOLE(int32, int32_t)
WHOLE(int64, int64_t)
WHOLE(uint32, uint32_t)
WHOLE(uint64, uint64_t)
#undef WHOLE

#define REAL(name, type)                                                                                     \
    static double name##_real(const void *data, int64_t i) {                                                 \
        return (double)((const type *)data)[i];                                                              \
    }                                                                                                        \
    static int64_t name##_integer(const void *data, int64_t i) {                                             \
        return to_integer((double)((const type *)data)[i]);                                                  \
    }                                                                                                        \
    static void name##_put(void *data, int64_t i, double real, int64_t integer) {                            \
        (void)integer;                                                                                       \
        ((type *)data)[i] = (type)real;                                                                      \
    }
REAL(float, float)
REAL(double, double)
#undef REAL

static float bits_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* IEEE 754 binary16. */
static double half_real(const void *data, int64_t i) {
    const uint16_t h = ((const uint16_t *)data)[i];
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double sign = h & 0x8000 ? -1 : 1;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static int64_t half_integer(const void *data, int64_t i) {
    return to_integer(half_real(data, i));
}

/* The upper half of a binary32. */
static double bfloat_real(const void *data, int64_t i) {
    return (double)bits_float((uint32_t)((const uint16_t *)data)[i] << 16);
}

static int64_t bfloat_integer(const void *data, int64_t i) {
    return to_integer(bfloat_real(data, i));
}

#define ROW(id, type_name, size, integral, get_real, get_integer, put_element)                               \
    [ONNX__TENSOR_PROTO__DATA_TYPE__##id] = {.name = #type_name,                                             \
                                             .bytes = size,                                                  \
                                             .whole = integral,                                              \
                                             .real = get_real,                                               \
                                             .integer = get_integer,                                         \
                                             .put = put_element}
/* 16-bit reals are read only: computed constants are float. */
static const onnx_type types[] = {
    ROW(FLOAT, float, 4, false, float_real, float_integer, float_put),
    ROW(UINT8, uint8, 1, true, uint8_real, uint8_integer, uint8_put),
    ROW(INT8, int8, 1, true, int8_real, int8_integer, int8_put),
    ROW(UINT16, uint16, 2, true, uint16_real, uint16_integer, uint16_put),
    ROW(INT16, int16, 2, true, int16_real, int16_integer, int16_put),
    ROW(INT32, int32, 4, true, int32_real, int32_integer, int32_put),
    ROW(INT64, int64, 8, true, int64_real, int64_integer, int64_put),
    ROW(BOOL, bool, 1, true, uint8_real, uint8_integer, uint8_put),
    ROW(FLOAT16, float16, 2, false, half_real, half_integer, NULL),
    ROW(DOUBLE, double, 8, false, double_real, double_integer, double_put),
    ROW(UINT32, uint32, 4, true, uint32_real, uint32_integer, uint32_put),
    ROW(UINT64, uint64, 8, true, uint64_real, uint64_integer, uint64_put),
    ROW(BFLOAT16, bfloat16, 2, false, bfloat_real, bfloat_integer, NULL),
};
#undef ROW

const onnx_type *onnx_type_of(int type) {
    const int n = sizeof types / sizeof types[0];
    return type >= 0 && type < n && types[type].name ? &types[type] : NULL;
}

double onnx_real(const onnx_const *c, int64_t i) {
    return c->data ? onnx_type_of(c->type)->real(c->data, i) : 0;
}

int64_t onnx_integer(const onnx_const *c, int64_t i) {
    return c->data ? onnx_type_of(c->type)->integer(c->data, i) : 0;
}
