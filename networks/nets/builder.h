/* builder.h - describes a network layer by layer: each call appends a layer and returns the id of its output
 * tensor.
 *
 * Shapes are inferred immediately. The builder keeps the first failure, after which all calls do nothing; a
 * network's code needs no error handling. Names are those of the state dict: scope + name. */
#ifndef HP_BUILDER_H
#define HP_BUILDER_H

#include "networks/graph/graph.h"

typedef struct hp_builder {
    hp_arena *arena;
    hp_graph *g;
    hp_error *err;
    hp_status status;  /* status of the first failure */
    const char *scope; /* "layer1.0.": prefix of names */
    int32_t unit;
    hp_init conv_init, conv_bias_init, linear_init, linear_bias_init;
    double norm_eps; /* epsilon of layer and RMS norms */
    double bn_eps, bn_momentum;
    int cap_layer, cap_tensor, cap_param;
} hp_builder;

/* Starts a graph; tensor 0 of the returned builder is the image. Initialisation schemes are torch's defaults
 * until changed. */
hp_builder hp_builder_start(hp_arena *arena, const char *net, int image_h, int image_w, int classes,
                            hp_error *err);
/* Ends the graph; the last layer is the output. *graph is not fused. */
hp_status hp_builder_finish(hp_builder *b, hp_graph **graph);

/* Starts a new unit for the following layers. */
void hp_build_unit(hp_builder *b);
/* Sets the prefix of subsequent names. */
void hp_build_scope(hp_builder *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A square window; stride, groups: 0 means 1. */
typedef struct hp_window {
    int k, stride, pad, groups;
    bool bias; /* conv only */
} hp_window;

/* Convolution and transposed convolution with out_c output channels. */
int hp_build_conv(hp_builder *b, int x, const char *name, int out_c, hp_window w);
/* Stride 1, no bias, padded to keep the map's size; kh and kw must be odd. */
int hp_build_conv_rect(hp_builder *b, int x, const char *name, int out_c, int kh, int kw);
int hp_build_convt(hp_builder *b, int x, const char *name, int out_c, hp_window w);
int hp_build_linear(hp_builder *b, int x, const char *name, int out_c);
int hp_build_bn(hp_builder *b, int x, const char *name);
int hp_build_add(hp_builder *b, int x, int y, const char *name);
/* y is a map of x's size, or one vector (1, 1, C) for all pixels. */
int hp_build_mul(hp_builder *b, int x, int y, const char *name);
int hp_build_resize(hp_builder *b, int x, const char *name, int h, int w, hp_interpolation interpolation,
                    hp_corners corners);
int hp_build_concat(hp_builder *b, int x, int y, const char *name);
int hp_build_concat_all(hp_builder *b, const int *x, int n, const char *name);
/* Zero-pads on all sides to h x w, with an odd row or column at the end; returns x itself if it has that
 * size. */
int hp_build_pad(hp_builder *b, int x, const char *name, int h, int w);
int hp_build_maxpool(hp_builder *b, int x, const char *name, hp_window w);
int hp_build_maxpool_ceil(hp_builder *b, int x, const char *name, hp_window w); /* ceil mode */
int hp_build_avgpool(hp_builder *b, int x, const char *name, hp_window w);
int hp_build_avgpool_inside(hp_builder *b, int x, const char *name, hp_window w); /* padding not counted */
int hp_build_adaptpool(hp_builder *b, int x, const char *name, int out_h, int out_w);
int hp_build_dropout(hp_builder *b, int x, const char *name, double p);

/* --- transformers --- */

/* A linear layer on every pixel's channels: a 1x1 convolution with weight (O, I). */
int hp_build_project(hp_builder *b, int x, const char *name, int out_c, bool bias);
/* The same without bias: a column layer whose weight is the table of the hp_build_embedding that made tensor
 * `embedded`. */
int hp_build_project_tied(hp_builder *b, int x, const char *name, int embedded);
/* Linear layers that tensor-parallel ranks split: the first of a pair, and the second, whose bias is added
 * after the ranks' summands (networks/graph/summands.h). */
int hp_build_column(hp_builder *b, int x, const char *name, int out_c, bool bias);
int hp_build_row(hp_builder *b, int x, const char *name, int out_c, bool bias);
int hp_build_layernorm(hp_builder *b, int x, const char *name);
typedef struct hp_heads {
    int heads, kv_heads; /* 0: as many */
    bool causal;
    int window_h, window_w, shift_h, shift_w; /* window 0: no windows */
    bool bias;                                /* bias by relative position in a window */
    double rotary;
} hp_heads;
int hp_build_attention(hp_builder *b, int q, int k, int v, const char *name, hp_heads h);
/* ids has one channel. Tensor-parallel ranks may split the table's rows; the second of its two layers adds up
 * their summands. */
int hp_build_embedding(hp_builder *b, int ids, const char *name, int rows, int out_c);
/* The table is named "<name>.<suffix>", or "<name>" without a suffix. */
int hp_build_position(hp_builder *b, int x, const char *name, const char *suffix);
int hp_build_classtoken(hp_builder *b, int x, const char *name);
int hp_build_crop(hp_builder *b, int x, const char *name, int at_h, int at_w, int h, int w);
int hp_build_merge(hp_builder *b, int x, const char *name);

/* --- maps --- */

/* By `like`'s rules (networks/graph/graph_gather.h); members that are 0 of kh, kw, groups, out_c, out_h and
 * out_w are those of the input. */
int hp_build_gather(hp_builder *b, int x, const char *name, const hp_layer *like);

/* Parameter `i` of the last layer (for a row layer: of it and its sum), to set its initialisation, its name
 * in files and its rows there. */
hp_param *hp_build_param(hp_builder *b, int i);
void hp_build_init(hp_builder *b, int i, hp_init init, double scale);

#endif
