/* cast.c - 16-bit floats, rounded to nearest even. What is finite stays so: beyond binary16's range lies its end. */
#include "exec/base/half.h"
#include "exec/device/codec/codes.h"

#include <math.h>

static void encode_bf16(const hp_code_block *b, const float *x, unsigned char *code) {
    uint16_t *to = (uint16_t *)(void *)code + b->first;
    for (int i = 0; i < b->n; i++) to[i] = to_bf16(x[i]);
}

static void decode_bf16(const hp_code_block *b, const unsigned char *code, float *x) {
    const uint16_t *from = (const uint16_t *)(const void *)code + b->first;
    for (int i = 0; i < b->n; i++) x[i] = from_bf16(from[i]);
}

static float within_f16(float v) {
    static const float MOST = 65504;
    return isfinite(v) ? fminf(fmaxf(v, -MOST), MOST) : v;
}

static void encode_f16(const hp_code_block *b, const float *x, unsigned char *code) {
    uint16_t *to = (uint16_t *)(void *)code + b->first;
    for (int i = 0; i < b->n; i++) to[i] = to_f16(within_f16(x[i]));
}

static void decode_f16(const hp_code_block *b, const unsigned char *code, float *x) {
    const uint16_t *from = (const uint16_t *)(const void *)code + b->first;
    for (int i = 0; i < b->n; i++) x[i] = from_f16(from[i]);
}

const hp_code_ops hp_code_bf16 = {encode_bf16, decode_bf16}, hp_code_fp16 = {encode_f16, decode_f16};
