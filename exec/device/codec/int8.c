/* int8.c - multiples of a scale that a block shares, max|x| / 127: no value is off by more than half of it. The scales of
 * all blocks come first. A block with a value that is not finite has a scale that is none, and decodes to NaN. */
#include "exec/device/codec/codes.h"

#include <math.h>
#include <string.h>

static const float MOST = 127;

static int64_t blocks(const hp_code_block *b) {
    return (b->count + HP_CODEC_BLOCK - 1) / HP_CODEC_BLOCK;
}

static float scale_of(const float *x, int n) {
    float most = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        most = fmaxf(most, fabsf(x[i]));
        sum += x[i] - x[i]; /* 0 of what is finite, else NaN */
    }
    return most / MOST + sum;
}

static int8_t multiple(float v, float scale) {
    const float q = v / scale;
    return (int8_t)(q < -MOST ? -MOST : q > MOST ? MOST : rintf(q));
}

static void encode(const hp_code_block *b, const float *x, unsigned char *code) {
    const float scale = scale_of(x, b->n);
    int8_t *to = (int8_t *)code + blocks(b) * (int64_t)sizeof scale + b->first;
    memcpy(code + b->first / HP_CODEC_BLOCK * (int64_t)sizeof scale, &scale, sizeof scale);
    memset(to, 0, (size_t)b->n);
    for (int i = 0; i < b->n && scale > 0; i++) to[i] = multiple(x[i], scale);
}

static void decode(const hp_code_block *b, const unsigned char *code, float *x) {
    float scale;
    const int8_t *from = (const int8_t *)code + blocks(b) * (int64_t)sizeof scale + b->first;
    memcpy(&scale, code + b->first / HP_CODEC_BLOCK * (int64_t)sizeof scale, sizeof scale);
    for (int i = 0; i < b->n; i++) x[i] = scale * (float)from[i];
}

const hp_code_ops hp_code_int8 = {encode, decode};
