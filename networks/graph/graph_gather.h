/* graph_gather.h - which element of its input each element of a gather is: rules that planner and kernels share, a GPU's too.
 *
 * Rows: the map, each pixel spread into kh x kw blocks, has kh * in_h rows; out_h rows of it are made, the first pad_h of which
 * come before the map. Where rows lie outside of it, `border` says which are taken instead. Columns alike.
 * Channels: pixel (py, px) of a block has channels (py * kw + px) * out_c + c of a sequence; its number i is channel
 * first + (i % groups) * step + (i / groups) * step_outer of the input.
 *
 * DepthToSpace, pixel shuffle and channel shuffle (ONNX; Shi et al. 2016; Zhang et al. 2018), slices of channels, one channel
 * repeated (step 0), and edges that are reflected or continued are all of this kind. */
#ifndef HP_GRAPH_GATHER_H
#define HP_GRAPH_GATHER_H

#include "networks/graph/graph.h"

#ifdef __CUDACC__
#define HP_GATHER_RULE static __host__ __device__ inline
#else
#define HP_GATHER_RULE static inline
#endif

/* What lies outside of a map (numpy.pad: edge, reflect, symmetric). */
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
    const hp_gathering g = {l->border, l->kh,     l->kw,    l->pad_h, l->pad_w,
                            l->out_c,  l->groups, l->first, l->step,  l->step_outer};
    return g;
}

/* Row of the n that a row of the output is, which counts from the map's first one; of rows that hp_layer_shape allows. */
HP_GATHER_RULE int64_t hp_gather_row(int32_t border, int64_t at, int64_t n) {
    const int64_t shift = border == (int32_t)HP_BORDER_SYMMETRIC;
    if (border == (int32_t)HP_BORDER_EDGE) return at < 0 ? 0 : at < n ? at : n - 1;
    if (at < 0) return -shift - at;
    return at < n ? at : 2 * (n - 1) + shift - at;
}

HP_GATHER_RULE int64_t hp_gather_channel(const hp_gathering *g, int64_t i) {
    return g->first + i % g->groups * g->step + i / g->groups * g->step_outer;
}

/* Where rows lie: before the map, in it, behind it. */
enum { HP_BEFORE_MAP, HP_IN_MAP, HP_BEHIND_MAP, HP_MAP_SIDES };

typedef struct hp_gather_rows {
    int64_t lo, hi; /* lo .. hi - 1 */
} hp_gather_rows;

/* The other way round: the output's rows on that side for which hp_gather_row is `row` of the n, however many are made. */
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
