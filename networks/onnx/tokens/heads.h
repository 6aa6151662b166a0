/* heads.h - queries, keys and values as views: which of their parts are heads, tokens or windows. */
#ifndef HP_HEADS_H
#define HP_HEADS_H

#include "networks/onnx/tokens/terms.h"

/* Queries, keys or values: dimension `rows` holds tokens, `cols` a head's channels; the others hold samples,
 * heads, windows. */
typedef struct onnx_heads {
    const onnx_value *x;
    onnx_view view;
    int rows, cols;
    int64_t n, step, width, stride;    /* number of heads and step between them; channels per head and step
                                        * between them */
    int64_t window[HP_AXES], n_window; /* rows and columns per window; windows per sample */
} onnx_heads;

/* Returns false if the view does not have this form. */
bool onnx_heads_read(const onnx_reader *r, const onnx_value *x, int rows, int cols, onnx_heads *h);
/* Reads queries and matching keys. */
bool onnx_heads_pair(const onnx_reader *r, const onnx_value *x, const onnx_value *keys, onnx_heads *q,
                     onnx_heads *k);
/* Do both have the same samples and windows in the same order, and heads of the same width, where each of b's
 * serves one or more of a's? */
bool onnx_heads_alike(const onnx_heads *a, const onnx_heads *b);
/* Are the tokens of both in the same order? */
bool onnx_heads_ordered(const onnx_heads *a, const onnx_heads *b);
/* Are the tokens, and the windows, in row order? */
bool onnx_heads_row_by_row(const onnx_heads *h);
/* The first boundary between windows along an axis, where rolled pixels are masked. */
int64_t onnx_heads_shift(const onnx_heads *h, int axis);
/* Row or column of the map that is the i-th of window `k` along an axis. */
int64_t onnx_heads_place(const onnx_reader *r, const onnx_heads *h, int axis, int64_t k, int64_t i);
/* Adds the table of a bias to the last layer (tokens/onnx_tokens_masks.c). */
hp_status onnx_emit_bias_table(const onnx_call *c, const onnx_const *k, const onnx_heads *q);

#endif
