/* layer.h - classes of layers that several modules treat alike. */
#ifndef HP_LAYER_H
#define HP_LAYER_H

#include "networks/graph/graph.h"

/* Does the layer multiply its input with a matrix of weights? */
static inline bool hp_layer_is_matrix(const hp_layer *l) {
    return l->op == HP_CONV || l->op == HP_CONVT || l->op == HP_LINEAR;
}

/* Does it apply the matrix directly, without a window over a map? */
static inline bool hp_layer_is_dense(const hp_graph *g, const hp_layer *l) {
    const hp_param_kind kind = hp_layer_is_matrix(l) ? g->param[l->param[0]].kind : HP_PARAM_BIAS;
    return kind == HP_PARAM_LINEAR_W || kind == HP_PARAM_TABLE;
}

/* A 1x1 convolution of tensor x: multiplies every pixel's channels with a matrix. */
static inline hp_layer hp_pixel_layer(int32_t x) {
    return (hp_layer){.op = HP_CONV,
                      .n_in = 1,
                      .in = {x},
                      .window.kh = 1,
                      .window.kw = 1,
                      .window.stride_h = 1,
                      .window.stride_w = 1,
                      .window.dil_h = 1,
                      .window.dil_w = 1,
                      .groups = 1};
}

#endif
