/* cast.c - 16-bit floats, rounded to nearest even. Finite values stay finite: they saturate at the end
 * of binary16's range. */
#include "exec/base/half.h"
#include "exec/device/codec/codec_codes.h"

#include <string.h>

static uint16_t to_finite_f16(float v) {
    const uint16_t h = to_f16(v);
    const bool overflows = (h & 0x7fff) == 0x7c00 && (bits_of(v) & 0x7fffffff) < 0x7f800000;
    return (uint16_t)(overflows ? h - 1 : h);
}

#define CAST(name, to, from)                                                                                 \
    static void encode_##name(const hp_code_block *b, const float *x, unsigned char *code) {                 \
        uint16_t half[HP_CODEC_BLOCK];                                                                       \
        for (int i = 0; i < HP_CODEC_BLOCK; i++) half[i] = to(x[i]);                                         \
        memcpy((uint16_t *)(void *)code + b->first, half, sizeof *half * (size_t)b->n);                      \
    }                                                                                                        \
    static void decode_##name(const hp_code_block *b, const unsigned char *code, float *x) {                 \
        uint16_t half[HP_CODEC_BLOCK] = {0};                                                                 \
        memcpy(half, (const uint16_t *)(const void *)code + b->first, sizeof *half * (size_t)b->n);          \
        for (int i = 0; i < HP_CODEC_BLOCK; i++) x[i] = from(half[i]);                                       \
    }                                                                                                        \
    const hp_code_ops hp_code_##name = {.encode = encode_##name, .decode = decode_##name};
CAST(bf16, to_bf16, from_bf16)
CAST(fp16, to_finite_f16, from_f16)
#undef CAST
