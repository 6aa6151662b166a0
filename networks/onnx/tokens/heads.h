/* heads.h - queries, keys and values as views: which of their parts are heads, tokens, windows. */
#ifndef HP_HEADS_H
#define HP_HEADS_H

#include "networks/onnx/tokens/terms.h"

/* Queries, keys or values: dimension `rows` is of tokens, `cols` of a head's channels, the others samples, heads, windows. */
typedef struct onnx_heads {
    const onnx_value *x;
    onnx_view view;
    int rows, cols;
    int64_t n, step, width, stride;    /* heads, between them; channels of one, between them */
    int64_t window[HP_AXES], n_window; /* rows and columns of a window; windows of a sample */
} onnx_heads;

/* false: it is not of this form. */
bool onnx_heads_read(const onnx_reader *r, const onnx_value *x, int rows, int cols, onnx_heads *h);
/* Queries and keys that fit. */
bool onnx_heads_pair(const onnx_reader *r, const onnx_value *x, const onnx_value *keys, onnx_heads *q,
                     onnx_heads *k);
/* The same samples and windows in the same order, and heads of the same width, b's shared by one or more of a's? */
bool onnx_heads_alike(const onnx_heads *a, const onnx_heads *b);
/* Are the tokens of both in the same order? */
bool onnx_heads_ordered(const onnx_heads *a, const onnx_heads *b);
/* Are the tokens, and the windows, row by row? */
bool onnx_heads_row_by_row(const onnx_heads *h);
/* The first line between windows of an axis, where what was rolled is hidden. */
int64_t onnx_heads_shift(const onnx_heads *h, int axis);
/* The row or column of the map that the i-th one of window `k` of an axis is. */
int64_t onnx_heads_place(const onnx_reader *r, const onnx_heads *h, int axis, int64_t k, int64_t i);
/* The last layer's table of a bias (tokens/onnx_tokens_masks.c). */
hp_status onnx_emit_bias_table(const onnx_call *c, const onnx_const *k, const onnx_heads *q);

#endif
