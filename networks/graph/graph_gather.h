/* graph_gather.h - maps each element of a gather's output to its input element: rules shared by the planner
 * and all kernels, including the GPU's.
 *
 * Rows: with each pixel spread into kh x kw blocks, the map has kh * in_h rows. The output has out_h rows,
 * the first pad_h of which lie before the map. `border` determines the rows that replace those outside.
 * Columns likewise. Channels: pixel (py, px) of a block has channels (py * kw + px) * out_c + c of a
 * sequence. Number i of the sequence is input channel first + (i % groups) * step + (i / groups) *
 * step_outer.
 *
 * Examples: DepthToSpace, pixel shuffle and channel shuffle (ONNX; Shi et al. 2016; Zhang et al. 2018),
 * slices of channels, one repeated channel (step 0), and reflected or continued edges. */
#ifndef HP_GRAPH_GATHER_H
#define HP_GRAPH_GATHER_H

#include "networks/graph/graph.h"

#ifdef __CUDACC__
#define HP_GATHER_RULE static __host__ __device__ inline
#else
#define HP_GATHER_RULE static inline
#endif

/* Values outside a map (numpy.pad: edge, reflect, symmetric). */
typedef enum hp_border {
    HP_BORDER_NONE,
    HP_BORDER_EDGE,
    HP_BORDER_REFLECT,
    HP_BORDER_SYMMETRIC,
    HP_BORDERS
} hp_border;

/* As in hp_layer. */
typedef struct hp_gathering {
    int32_t border, kh, kw, pad_h, pad_w, out_c, groups, first, step, step_outer;
} hp_gathering;

static inline hp_gathering hp_gathering_of(const hp_layer *l) {
    const hp_gathering g = {l->gather.border, l->window.kh,        l->window.kw, l->window.pad_h,
                            l->window.pad_w,  l->gather.out_c,     l->groups,    l->gather.first,
                            l->gather.step,   l->gather.step_outer};
    return g;
}

/* Input row (0 .. n-1) of the output row `at`, counted from the map's first row; for rows that hp_layer_shape
 * allows. */
HP_GATHER_RULE int64_t hp_gather_row(int32_t border, int64_t at, int64_t n) {
    const int64_t shift = border == (int32_t)HP_BORDER_SYMMETRIC;
    if (border == (int32_t)HP_BORDER_EDGE) return at < 0 ? 0 : at < n ? at : n - 1;
    if (at < 0) return -shift - at;
    return at < n ? at : 2 * (n - 1) + shift - at;
}

HP_GATHER_RULE int64_t hp_gather_channel(const hp_gathering *g, int64_t i) {
    return g->first + i % g->groups * g->step + i / g->groups * g->step_outer;
}

/* Position of rows: before the map, in it, behind it. */
enum { HP_BEFORE_MAP, HP_IN_MAP, HP_BEHIND_MAP, HP_MAP_SIDES };

typedef struct hp_gather_rows {
    int64_t lo, hi; /* lo .. hi - 1 */
} hp_gather_rows;

/* The inverse: the output rows on that side for which hp_gather_row returns `row`, for any number of output
 * rows. */
HP_GATHER_RULE hp_gather_rows hp_gather_readers(int32_t border, int64_t row, int64_t n, int side) {
    const int64_t shift = border == (int32_t)HP_BORDER_SYMMETRIC, far = INT32_MAX,
                  mirrored = side == HP_BEFORE_MAP ? -shift - row : 2 * (n - 1) + shift - row;
    const bool before = side == HP_BEFORE_MAP, outside = before ? mirrored < 0 : mirrored >= n;
    const hp_gather_rows own = {row, row + 1}, none = {0, 0},
                         edge = {before ? -far : n, before ? 0 : n + far}, mirror = {mirrored, mirrored + 1};
    if (side == HP_IN_MAP) return own;
    if (border == (int32_t)HP_BORDER_EDGE) return row == (before ? 0 : n - 1) ? edge : none;
    return border != (int32_t)HP_BORDER_NONE && outside ? mirror : none;
}

#undef HP_GATHER_RULE

#endif
