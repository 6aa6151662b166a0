/* tile.h - spatial parallelism as interval arithmetic: boxes of a tensor, their owners, and the input that a
 * layer needs.
 *
 * A box is a range of samples, rows, columns and channels of a micro-batch's tensor, [lo, hi) on each axis. A
 * layout describes how a stage splits its tensors into parts. Its axes are tiles (rows, columns), slices of
 * the batch and channel slices. Spatial, local data and channel parallelism are thus one mechanism, and
 * converting between two layouts is an intersection of boxes. */
#ifndef HP_TILE_H
#define HP_TILE_H

#include "networks/graph/graph.h"
#include "plan/tiles/proportions.h"

typedef struct hp_box {
    int32_t lo[HP_AXES], hi[HP_AXES];
} hp_box;

static inline int32_t hp_box_len(const hp_box *b, int axis) {
    return b->hi[axis] - b->lo[axis];
}

bool hp_box_empty(const hp_box *b);
int64_t hp_box_elems(const hp_box *b); /* 0 when empty */
bool hp_box_equal(const hp_box *a, const hp_box *b);
bool hp_box_within(const hp_box *inner, const hp_box *outer); /* an empty box is within any box */
hp_box hp_box_and(const hp_box *a, const hp_box *b);          /* intersection; empty = all zero */
hp_box hp_box_around(const hp_box *a,
                     const hp_box *b); /* smallest box that contains both; empty boxes are ignored */
hp_box hp_box_whole(const hp_graph *g, int tensor, int64_t samples);

/* How the tensors of one stage are split: rows x cols tiles x slices of the samples x channel slices. Ranks
 * of tp and seq share rows of one tensor and channels of another (plan/strategy/sequence.h). Part = ((((slice
 * * rows + row) * cols + col) * seq + s) * channels + channel) * tp + t. */
typedef struct hp_layout {
    int32_t rows, cols, slices, channels;
    int32_t tp, seq;
    bool seq_by_heads;            /* seq splits the channels of attention's output, not its rows */
    hp_proportions by[HP_AXIS_C]; /* proportions of samples, rows and columns */
} hp_layout;

/* Number of parts that share a tile. */
static inline int hp_layout_per_tile(const hp_layout *l) {
    return l->seq * l->channels * l->tp;
}
static inline int hp_layout_parts(const hp_layout *l) {
    return l->rows * l->cols * l->slices * hp_layout_per_tile(l);
}

bool hp_layout_equal(const hp_layout *a, const hp_layout *b);
uint64_t hp_layout_hash(const hp_layout *l, uint64_t seed);

/* Start of part `k` when `n` items are split evenly over `parts`; it ends where part k + 1 starts. */
static inline int32_t hp_split_at(int64_t n, int parts, int k) {
    return (int32_t)(n * k / parts);
}

/* The box of `tensor` that `part` owns. The boxes of all parts are disjoint and cover the tensor. */
hp_box hp_layout_own(const hp_layout *l, const hp_graph *g, int tensor, int64_t samples, int part);

/* The box of input `k` that the layer needs to compute the box `out` of its output, clipped to the input
 * (without padding). Empty if `out` is. */
hp_box hp_layer_need(const hp_graph *g, int layer, int k, const hp_box *out);

/* Can the layer read its input from a buffer of box `have` (which contains `need`) without a copy? */
bool hp_layer_reads(const hp_graph *g, int layer, const hp_box *need, const hp_box *have);
/* The part of a buffer of box `have` that a layer of a deployed graph sees when it needs `need`: rows of one
 * sample are contiguous, so rows before and after can be left out. */
hp_box hp_layer_view(const hp_graph *g, const hp_box *need, const hp_box *have);

/* Splits the box `out` of a layer's output into the interior, piece[0], and up to four strips around it. The
 * interior needs only `have`, without the halo in `need`. Returns the number of pieces; 0 if splitting does
 * not pay (the interior is below half of the box, or would need a copy of its input). */
int hp_interior(const hp_graph *g, int layer, const hp_box *have, const hp_box *need, const hp_box *out,
                hp_box piece[5]);

/* The box that every part of a stage holds of every tensor, and the boxes that its layers need. halo > 1:
 * tensors between exchanges are computed beyond the owned box, so that `halo` halo-bearing layers share one
 * exchange. */
typedef struct hp_geometry {
    hp_layout layout;
    int32_t branches;           /* part = layout part * branches + branch */
    int32_t *branch_of;         /* per tensor: the branch whose parts own it */
    int32_t n_part, first, end; /* number of parts; layers first .. end-1 */
    int64_t samples;
    hp_box *own, *have;  /* [part * n_tensor + tensor]; only tensors of the stage */
    int32_t *need_first; /* per layer, minus `first`: index of its first input in need */
    int32_t n_need;
    hp_box *need; /* [part * n_need + need_first[layer - first] + k] */
} hp_geometry;

/* Geometry of the stage of layers first .. end-1 (including the tensors that enter it). Lives in `arena`.
 * branches > 1: the layers are also distributed over that many branches (networks/graph/branch.h). Layers
 * before `deep` never exchange: each part computes what its own later layers need. */
hp_geometry *hp_geometry_deep(hp_arena *arena, const hp_graph *g, const hp_layout *l, int branches, int first,
                              int end, int64_t samples, int halo, int deep);
static inline const hp_box *hp_geometry_have(const hp_geometry *geo, const hp_graph *g, int part,
                                             int tensor) {
    return &geo->have[(int64_t)part * g->n_tensor + tensor];
}
static inline const hp_box *hp_geometry_own(const hp_geometry *geo, const hp_graph *g, int part, int tensor) {
    return &geo->own[(int64_t)part * g->n_tensor + tensor];
}
static inline const hp_box *hp_geometry_need(const hp_geometry *geo, int part, int layer, int k) {
    return &geo->need[(int64_t)part * geo->n_need + geo->need_first[layer - geo->first] + k];
}

/* A layer between two boxes, as kernels see it: local sizes, local padding at the top and left (the bottom
 * and right follow from the sizes), and the boxes' positions in the whole map. */
typedef struct hp_shape {
    int64_t n;
    int32_t ih, iw, ic, oh, ow, oc;
    int32_t kh, kw, sh, sw, ph, pw, dh, dw, groups;
    int32_t iy0, ix0, oy0, ox0, oc0; /* first row, column, channel of the boxes in the whole map */
    struct {
        int32_t ih, iw, oh, ow, oc;
    } full; /* the whole maps; their padding is the layer's */
} hp_shape;

/* `in`: box of the buffer that is read (input 0); `out`: box of the output. A linear layer is a convolution
 * whose kernel covers the whole input. */
hp_shape hp_shape_between(const hp_graph *g, int layer, const hp_box *in, const hp_box *out);

#endif
