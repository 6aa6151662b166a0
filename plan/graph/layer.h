/* layer.h - kinds of layers that several parts treat alike, and the rules of a gather. */
#ifndef HP_LAYER_H
#define HP_LAYER_H

#include "plan/graph/graph.h"

/* Is it a product of its input with a matrix of weights? */
static inline bool hp_layer_is_matrix(const hp_layer *l) {
    return l->op == HP_CONV || l->op == HP_CONVT || l->op == HP_LINEAR;
}

/* Is it one of matrices as they are: does no window run over a map? */
static inline bool hp_layer_is_dense(const hp_graph *g, const hp_layer *l) {
    const hp_param_kind kind = hp_layer_is_matrix(l) ? g->param[l->param[0]].kind : HP_PARAM_BIAS;
    return kind == HP_PARAM_LINEAR_W || kind == HP_PARAM_TABLE;
}

/* A convolution of one pixel of tensor x: a product of every pixel's channels with a matrix. */
static inline hp_layer hp_pixel_layer(int32_t x) {
    return (hp_layer){.op = HP_CONV,
                      .n_in = 1,
                      .in = {x},
                      .kh = 1,
                      .kw = 1,
                      .stride_h = 1,
                      .stride_w = 1,
                      .dil_h = 1,
                      .dil_w = 1,
                      .groups = 1};
}

/* --- gather: which element of its input each element is; three rules that planner and kernels share ---
 *
 * Rows: the map, each pixel spread into kh x kw blocks, has kh * in_h rows; out_h rows of it are made, the first pad_h of which
 * come before the map. Where rows lie outside of it, `border` says which are taken instead. Columns alike.
 * Channels: pixel (py, px) of a block has channels (py * kw + px) * out_c + c of a sequence; its number i is channel
 * first + (i % groups) * step + (i / groups) * step_outer of the input.
 *
 * DepthToSpace, pixel shuffle and channel shuffle (ONNX; Shi et al. 2016; Zhang et al. 2018), slices of channels, one channel
 * repeated (step 0), and edges that are reflected or continued are all of this kind. */

/* What lies outside of a map (numpy.pad: edge, reflect, symmetric). */
typedef enum hp_border {
    HP_BORDER_NONE,
    HP_BORDER_EDGE,
    HP_BORDER_REFLECT,
    HP_BORDER_SYMMETRIC,
    HP_BORDERS
} hp_border;

/* Row of the n that a row of the output is, which counts from the map's first one; of rows that hp_layer_shape allows. */
static inline int64_t hp_gather_row(int32_t border, int64_t at, int64_t n) {
    const int64_t shift = border == (int32_t)HP_BORDER_SYMMETRIC;
    if (border == (int32_t)HP_BORDER_EDGE) return at < 0 ? 0 : at < n ? at : n - 1;
    if (at < 0) return -shift - at;
    return at < n ? at : 2 * (n - 1) + shift - at;
}

static inline int64_t hp_gather_channel(const hp_layer *l, int64_t i) {
    return l->first + i % l->groups * l->step + i / l->groups * l->step_outer;
}

#endif
