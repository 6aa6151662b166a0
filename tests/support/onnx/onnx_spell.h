/* onnx_spell.h - shared by the files that write transformers: nodes and constants with generated names. */
#ifndef HP_TESTS_ONNX_SPELL_H
#define HP_TESTS_ONNX_SPELL_H

#include "tests/support/onnx/onnx_tokens.h"

typedef struct writing {
    onnx_writer w;
    const hp_graph *g;
    const float *const *param;
    tokens_spelling s;
    int n; /* number of generated names */
} writing;

const char *spell_value(const writing *o, int32_t tensor); /* "t5" */
const char *spell_fresh(writing *o);
int64_t spell_samples(const writing *o);
int64_t spell_channels(const writing *o, int32_t tensor);
const float *spell_data_of(const writing *o, const hp_layer *l, int i);
/* Does it have windows, so that its values are maps? */
bool spell_is_map(const writing *o);

const char *spell_floats(writing *o, size_t n_dim, const int64_t *dim, const float *v);
const char *spell_number(writing *o, double v);
const char *spell_integers(writing *o, size_t n, const int64_t *v);
const char *spell_scalar(writing *o, int64_t v);

/* Adds a node with one or two inputs (b NULL: one) and output y, or a generated name. */
Onnx__NodeProto *spell_node(writing *o, const char *op, const char *a, const char *b, const char *y);
const char *spell_apply(writing *o, const char *op, const char *a, const char *b);
const char *spell_reshape(writing *o, const char *x, size_t n, const int64_t *dim);
const char *spell_transpose(writing *o, const char *x, size_t n, const int64_t *perm);
/* Queries, keys and values of attention `l` in one product of x: (.., 3C). */
const char *spell_joined(writing *o, const hp_layer *l, const char *x);
/* Splits (n, tokens, 3C) into three of (n, heads, tokens, d), by way of (3, n, heads, tokens, d). */
void spell_gather_heads(writing *o, const char *x, const hp_layer *l, int64_t n, int64_t tokens,
                        const char *part[3]);

/* Attention in windows, and merging of 2 x 2 pixels into one (onnx_windows.c). */
void spell_windows(writing *o, const hp_layer *l);
void spell_merge(writing *o, const hp_layer *l);

#endif
