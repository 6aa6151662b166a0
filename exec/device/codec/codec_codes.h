/* codec_codes.h - what each codec does with a block of float32 values. */
#ifndef HP_CODEC_CODES_H
#define HP_CODEC_CODES_H

#include "exec/device/device_bind.h"

/* Values first .. first+n-1 of `count`, within one block of HP_CODEC_BLOCK. */
typedef struct hp_code_block {
    int64_t count, first;
    int n;
} hp_code_block;

/* A codec. Block by block: x has HP_CODEC_BLOCK values; those after the first n are 0 or ignored. Codecs that
 * do not work in blocks set the functions for a whole task instead. */
typedef struct hp_code_ops {
    void (*encode)(const hp_code_block *b, const float *x, unsigned char *code);
    void (*decode)(const hp_code_block *b, const unsigned char *code, float *x);
    void (*encode_all)(const hp_bound *b);
    void (*decode_all)(const hp_bound *b);
} hp_code_ops;

static inline double hp_code_get(const void *values, hp_dtype dtype, int64_t i) {
    return dtype == HP_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}
static inline void hp_code_put(void *values, hp_dtype dtype, int64_t i, double v) {
    if (dtype == HP_F32)
        ((float *)values)[i] = (float)v;
    else
        ((double *)values)[i] = v;
}

extern const hp_code_ops hp_code_bf16, hp_code_fp16; /* codec/cast.c */
extern const hp_code_ops hp_code_int8;               /* codec/codec_int8.c */
extern const hp_code_ops hp_code_zfp;                /* codec/zfp.c */

#endif
