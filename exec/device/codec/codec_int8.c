/* codec_int8.c - multiples of a scale per block, max|x| / 127: no value is off by more than half of it. The
 * scales of all blocks come first. A block with a value that is not finite has a non-finite scale and decodes
 * to NaN. A block whose scale has no reciprocal (values below 2^-120) decodes to 0. */
#include "exec/base/half.h"
#include "exec/device/codec/codec_codes.h"

#include <math.h>
#include <string.h>

static const float MOST = 127;

static int64_t blocks(const hp_code_block *b) {
    return (b->count + HP_CODEC_BLOCK - 1) / HP_CODEC_BLOCK;
}

/* Magnitudes compare like their bits. */
static float largest(const float *x) {
    int32_t most = 0;
    for (int i = 0; i < HP_CODEC_BLOCK; i++) {
        const int32_t bits = (int32_t)(bits_of(x[i]) & 0x7fffffff);
        most = bits > most ? bits : most;
    }
    return as_float((uint32_t)most);
}

/* Adding 1.5 * 2^23 rounds to an integer. */
static int8_t nearest(float v) {
    static const float ROUND = 0x1.8p23f;
    return (int8_t)(int32_t)(v + ROUND - ROUND);
}

static void encode(const hp_code_block *b, const float *x, unsigned char *code) {
    const float most = largest(x), inverse = 1 / (most / MOST);
    const float scale = !isfinite(most) ? NAN : isfinite(inverse) ? most / MOST : 0;
    const float by = scale > 0 ? inverse : 0;
    int8_t multiple[HP_CODEC_BLOCK] = {0};
    for (int i = 0; i < HP_CODEC_BLOCK && by > 0; i++) multiple[i] = nearest(x[i] * by);
    memcpy(code + b->first / HP_CODEC_BLOCK * (int64_t)sizeof scale, &scale, sizeof scale);
    memcpy(code + blocks(b) * (int64_t)sizeof scale + b->first, multiple, (size_t)b->n);
}

static void decode(const hp_code_block *b, const unsigned char *code, float *x) {
    float scale;
    int8_t multiple[HP_CODEC_BLOCK] = {0};
    memcpy(&scale, code + b->first / HP_CODEC_BLOCK * (int64_t)sizeof scale, sizeof scale);
    memcpy(multiple, code + blocks(b) * (int64_t)sizeof scale + b->first, (size_t)b->n);
    for (int i = 0; i < HP_CODEC_BLOCK; i++) x[i] = scale * (float)multiple[i];
}

const hp_code_ops hp_code_int8 = {.encode = encode, .decode = decode};
