/* code.c - codecs block by block, of float32 and of float64 values. */
#include "exec/device/codec/code.h"

#include "exec/device/codec/codes.h"

static const hp_code_ops *const ops[HP_CODEC_KINDS] = {
    [HP_CODEC_BF16] = &hp_code_bf16, [HP_CODEC_FP16] = &hp_code_fp16, [HP_CODEC_INT8] = &hp_code_int8};

static double value(const void *values, hp_dtype dtype, int64_t i) {
    return dtype == HP_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static void get(const void *values, hp_dtype dtype, int64_t first, int n, double *x) {
    for (int i = 0; i < n; i++) x[i] = value(values, dtype, first + i);
}

static void add(const void *values, hp_dtype dtype, int64_t first, int n, double *x) {
    for (int i = 0; i < n; i++) x[i] += value(values, dtype, first + i);
}

static void put(void *values, hp_dtype dtype, int64_t first, int n, const double *x) {
    for (int i = 0; i < n; i++) {
        if (dtype == HP_F32)
            ((float *)values)[first + i] = (float)x[i];
        else
            ((double *)values)[first + i] = x[i];
    }
}

static hp_code_block block_at(int64_t count, int64_t first) {
    return (hp_code_block){count, first,
                           (int)(count - first < HP_CODEC_BLOCK ? count - first : HP_CODEC_BLOCK)};
}

void hp_code_encode(const hp_bound *b) {
    const hp_code_ops *codec = ops[hp_codec_kind_of(b->codec)];
    for (int64_t first = 0; first < b->count; first += HP_CODEC_BLOCK) {
        const hp_code_block at = block_at(b->count, first);
        double exact[HP_CODEC_BLOCK];
        float x[HP_CODEC_BLOCK];
        get(b->x[0], b->dtype, first, at.n, exact);
        if (b->residual) add(b->residual, b->dtype, first, at.n, exact);
        for (int i = 0; i < at.n; i++) x[i] = (float)exact[i];
        codec->encode(&at, x, b->y);
        if (!b->residual) continue;
        codec->decode(&at, b->y, x);
        for (int i = 0; i < at.n; i++) exact[i] -= (double)x[i];
        put(b->residual, b->dtype, first, at.n, exact);
    }
}

void hp_code_decode(const hp_bound *b) {
    const hp_code_ops *codec = ops[hp_codec_kind_of(b->codec)];
    const int64_t bytes = hp_codec_bytes(b->codec, b->count / b->cols, b->cols);
    float x[HP_CODEC_BLOCK];
    for (int64_t first = 0; first < b->count; first += HP_CODEC_BLOCK) {
        const hp_code_block at = block_at(b->count, first);
        double sum[HP_CODEC_BLOCK] = {0};
        for (int64_t k = 0; k < b->n_codes; k++) {
            codec->decode(&at, (const unsigned char *)b->x[0] + k * bytes, x);
            for (int i = 0; i < at.n; i++) sum[i] += (double)x[i];
        }
        put(b->y, b->dtype, first, at.n, sum);
    }
}
