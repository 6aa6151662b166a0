/* st_convert.c - converts stored floating-point formats to float and double. Data are little-endian and
 * unaligned in the file; hplan runs on little-endian machines (checked at compile time). */
#include "exec/data/weights/safetensors.h"

#include <math.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors data are little-endian");

static double from_f64(const unsigned char *p) {
    double v;
    memcpy(&v, p, sizeof v);
    return v;
}

static double from_f32(const unsigned char *p) {
    float v;
    memcpy(&v, p, sizeof v);
    return (double)v;
}

/* IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits. */
static double from_f16(const unsigned char *p) {
    uint16_t b;
    memcpy(&b, p, sizeof b);
    const int exponent = b >> 10 & 31, fraction = b & 1023;
    const double sign = b >> 15 ? -1.0 : 1.0;
    if (exponent == 31) return fraction ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

/* bfloat16: the upper half of a binary32. */
static double from_bf16(const unsigned char *p) {
    uint16_t b;
    memcpy(&b, p, sizeof b);
    const uint32_t wide = (uint32_t)b << 16;
    float v;
    memcpy(&v, &wide, sizeof v);
    return (double)v;
}

static double (*const readers[HP_ST_DTYPES])(const unsigned char *p) = {
    [HP_ST_F64] = from_f64, [HP_ST_F32] = from_f32, [HP_ST_F16] = from_f16, [HP_ST_BF16] = from_bf16};

hp_st_tensor hp_st_slice(const hp_st_tensor *t, int64_t first, int64_t count) {
    HP_ASSERT(first >= 0 && count >= 0 && first + count <= t->count);
    hp_st_tensor slice = *t;
    slice.n_dim = 1;
    slice.dim[0] = slice.count = count;
    slice.data = t->data + first * hp_st_infos[t->dtype].bytes;
    return slice;
}

int hp_st_is_real(const hp_st_tensor *t) {
    return readers[t->dtype] != NULL;
}

void hp_st_to_f32(const hp_st_tensor *t, float *out) {
    HP_ASSERT(hp_st_is_real(t));
    const int size = hp_st_infos[t->dtype].bytes;
    if (t->dtype == HP_ST_F32) {
        if (t->count) memcpy(out, t->data, (size_t)t->count * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < t->count; i++) out[i] = (float)readers[t->dtype](t->data + i * size);
}

void hp_st_to_f64(const hp_st_tensor *t, double *out) {
    HP_ASSERT(hp_st_is_real(t));
    const int size = hp_st_infos[t->dtype].bytes;
    for (int64_t i = 0; i < t->count; i++) out[i] = readers[t->dtype](t->data + i * size);
}
