/* code.c - runs codecs block by block, on float32 and float64 values. */
#include "exec/device/codec/code.h"

#include "exec/device/codec/codec_codes.h"
#include "plan/codec/codecs.h"

#include <string.h>

static const hp_code_ops *const ops[HP_CODEC_KINDS] = {
    [HP_CODEC_BF16] = &hp_code_bf16,
    [HP_CODEC_FP16] = &hp_code_fp16,
    [HP_CODEC_INT8] = &hp_code_int8,
#ifdef HP_HAVE_ZFP
    [HP_CODEC_ZFP] = &hp_code_zfp,
#endif
};

static hp_code_block block_at(int64_t count, int64_t first) {
    return (hp_code_block){count, first,
                           (int)(count - first < HP_CODEC_BLOCK ? count - first : HP_CODEC_BLOCK)};
}

static void encode_f32(const hp_code_ops *codec, const hp_bound *b, const hp_code_block *at) {
    float x[HP_CODEC_BLOCK] = {0}, back[HP_CODEC_BLOCK],
          *kept = b->code.residual ? (float *)b->code.residual + at->first : NULL;
    memcpy(x, (const float *)b->x[0] + at->first, sizeof *x * (size_t)at->n);
    for (int i = 0; i < at->n && kept; i++) x[i] += kept[i];
    codec->encode(at, x, b->y);
    if (!kept) return;
    codec->decode(at, b->y, back);
    for (int i = 0; i < at->n; i++) kept[i] = x[i] - back[i];
}

static void encode_f64(const hp_code_ops *codec, const hp_bound *b, const hp_code_block *at) {
    const double *from = (const double *)b->x[0] + at->first;
    double *kept = b->code.residual ? (double *)b->code.residual + at->first : NULL;
    float x[HP_CODEC_BLOCK] = {0}, back[HP_CODEC_BLOCK];
    for (int i = 0; i < at->n; i++) x[i] = (float)(from[i] + (kept ? kept[i] : 0));
    codec->encode(at, x, b->y);
    if (!kept) return;
    codec->decode(at, b->y, back);
    for (int i = 0; i < at->n; i++) kept[i] += from[i] - (double)back[i];
}

static void encode_blocks(const hp_code_ops *codec, const hp_bound *b) {
    for (int64_t first = 0; first < b->count; first += HP_CODEC_BLOCK) {
        const hp_code_block at = block_at(b->count, first);
        (b->dtype == HP_F32 ? encode_f32 : encode_f64)(codec, b, &at);
    }
}

/* Summed in float64. */
static void decode_block(const hp_code_ops *codec, const hp_bound *b, const hp_code_block *at,
                         int64_t bytes) {
    double sum[HP_CODEC_BLOCK] = {0};
    float x[HP_CODEC_BLOCK];
    for (int64_t k = 0; k < b->code.n; k++) {
        codec->decode(at, (const unsigned char *)b->x[0] + k * bytes, x);
        for (int i = 0; i < HP_CODEC_BLOCK; i++) sum[i] += (double)x[i];
    }
    for (int i = 0; i < at->n; i++) hp_code_put(b->y, b->dtype, at->first + i, sum[i]);
}

static void decode_blocks(const hp_code_ops *codec, const hp_bound *b) {
    const int64_t bytes = hp_codec_bytes(b->code.codec, b->count / b->code.cols, b->code.cols);
    for (int64_t first = 0; first < b->count; first += HP_CODEC_BLOCK) {
        const hp_code_block at = block_at(b->count, first);
        decode_block(codec, b, &at, bytes);
    }
}

void hp_code_encode(const hp_bound *b) {
    const hp_code_ops *codec = ops[hp_codec_kind_of(b->code.codec)];
    if (codec->encode_all)
        codec->encode_all(b);
    else
        encode_blocks(codec, b);
}

void hp_code_decode(const hp_bound *b) {
    const hp_code_ops *codec = ops[hp_codec_kind_of(b->code.codec)];
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
