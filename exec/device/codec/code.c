/* code.c - codecs block by block, of float32 and of float64 values. */
#include "exec/device/codec/code.h"

#include "exec/device/codec/codes.h"

static const hp_code_ops *const ops[HP_CODEC_KINDS] = {
    [HP_CODEC_BF16] = &hp_code_bf16,
    [HP_CODEC_FP16] = &hp_code_fp16,
    [HP_CODEC_INT8] = &hp_code_int8,
#ifdef HP_HAVE_ZFP
    [HP_CODEC_ZFP] = &hp_code_zfp,
#endif
};

static void get(const void *values, hp_dtype dtype, int64_t first, int n, double *x) {
    for (int i = 0; i < n; i++) x[i] = hp_code_get(values, dtype, first + i);
}

static void add(const void *values, hp_dtype dtype, int64_t first, int n, double *x) {
    for (int i = 0; i < n; i++) x[i] += hp_code_get(values, dtype, first + i);
}

static void put(void *values, hp_dtype dtype, int64_t first, int n, const double *x) {
    for (int i = 0; i < n; i++) hp_code_put(values, dtype, first + i, x[i]);
}

static hp_code_block block_at(int64_t count, int64_t first) {
    return (hp_code_block){count, first,
                           (int)(count - first < HP_CODEC_BLOCK ? count - first : HP_CODEC_BLOCK)};
}

static void encode_blocks(const hp_code_ops *codec, const hp_bound *b) {
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

static void decode_blocks(const hp_code_ops *codec, const hp_bound *b) {
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

void hp_code_encode(const hp_bound *b) {
    const hp_code_ops *codec = ops[hp_codec_kind_of(b->codec)];
    if (codec->encode_all)
        codec->encode_all(b);
    else
        encode_blocks(codec, b);
}

void hp_code_decode(const hp_bound *b) {
    const hp_code_ops *codec = ops[hp_codec_kind_of(b->codec)];
    if (codec->decode_all)
        codec->decode_all(b);
    else
        decode_blocks(codec, b);
}

hp_status hp_codes_here(const hp_role *r, hp_error *err) {
    char name[HP_CODEC_TEXT];
    for (int i = 0; i < r->n_buffer; i++)
        if (hp_buffer_is_code(&r->buffer[i]) &&
            hp_codec_info_of(r->buffer[i].codec)->sum != HP_CODEC_FACTORED &&
            !ops[hp_codec_kind_of(r->buffer[i].codec)])
            return hp_fail(
                err, HP_EUNAVAIL,
                "this plan sends %s, and this hplan-exec was built without zfp: install libzfp-dev and "
                "build again, or choose another compress=",
                hp_codec_text(r->buffer[i].codec, name));
    return HP_OK;
}
