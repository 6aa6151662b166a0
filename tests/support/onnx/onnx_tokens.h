/* onnx_tokens.h - writes vit: and gpt: networks (networks/nets), and small Swins, as ONNX, in the ways that
 * exporters write them. */
#ifndef HP_TESTS_ONNX_TOKENS_H
#define HP_TESTS_ONNX_TOKENS_H

#include "networks/graph/graph.h"
#include "tests/support/onnx/onnx_write.h"

typedef enum tokens_split { SPLIT_SLICES, SPLIT_SPLIT, SPLIT_GATHERS, SPLITS } tokens_split;
typedef enum tokens_mask { MASK_WHERE_HIDDEN, MASK_WHERE_SEEN, MASK_ADD, MASKS } tokens_mask;

typedef enum tokens_fused { FUSED_NOT, FUSED_HEADS, FUSED_FLAT, FUSEDS } tokens_fused;

typedef struct tokens_spelling {
    int batch;           /* 0: open */
    bool norm_op;        /* uses LayerNormalization, or its nine nodes */
    bool tokens_first;   /* attention on (tokens, N, C), with samples and heads as one dimension, like
                          * nn.MultiheadAttention */
    bool scale_on_q;     /* or on the scores */
    bool folded_head;    /* a tied head's weight is a separate constant */
    bool slices_a_token; /* the class token by Slice and Squeeze, or by Gather */
    tokens_split split;  /* how queries, keys and values are split from one product */
    tokens_mask mask;
    tokens_fused fused; /* Attention of opset 23 */
} tokens_spelling;

/* The spelling that these bits select; any number is valid. */
tokens_spelling tokens_spelling_of(unsigned bits);
/* param: the data of each parameter of g, a network for one rank. */
onnx_writer tokens_model(hp_arena *a, const hp_graph *g, const float *const *param, tokens_spelling s);
/* A Swin with two blocks, where the second's windows are shifted by 2 rows and 1 column, and one with windows
 * as wide as the map; 7 classes; for images of 16x24. NULL: it cannot be built. */
hp_graph *tokens_windows(hp_arena *a, int h, int w, hp_error *err);

#endif
