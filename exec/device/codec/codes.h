/* codes.h - what each codec does with a block of values, float32. */
#ifndef HP_CODES_H
#define HP_CODES_H

#include "plan/codec/codec.h"

/* Values first .. first+n-1 of `count`, within one block of HP_CODEC_BLOCK. */
typedef struct hp_code_block {
    int64_t count, first;
    int n;
} hp_code_block;

typedef struct hp_code_ops {
    void (*encode)(const hp_code_block *b, const float *x, unsigned char *code);
    void (*decode)(const hp_code_block *b, const unsigned char *code, float *x);
} hp_code_ops;

extern const hp_code_ops hp_code_bf16, hp_code_fp16; /* codec/cast.c */
extern const hp_code_ops hp_code_int8;               /* codec/int8.c */

#endif
