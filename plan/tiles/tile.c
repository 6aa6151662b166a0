/* tile.c - boxes, even splits, and the input that a layer needs for a part of its output. */
#include "plan/tiles/tile.h"

#include "base/hash.h"
#include "networks/graph/reads.h"
#include "networks/graph/summands.h"

#include <string.h>

/* --- boxes --- */

bool hp_box_empty(const hp_box *b) {
    for (int a = 0; a < HP_AXES; a++)
        if (b->hi[a] <= b->lo[a]) return true;
    return false;
}

int64_t hp_box_elems(const hp_box *b) {
    int64_t n = 1;
    if (hp_box_empty(b)) return 0;
    for (int a = 0; a < HP_AXES; a++) n *= b->hi[a] - b->lo[a];
    return n;
}

bool hp_box_equal(const hp_box *a, const hp_box *b) {
    return memcmp(a, b, sizeof *a) == 0 || (hp_box_empty(a) && hp_box_empty(b));
}

bool hp_box_within(const hp_box *inner, const hp_box *outer) {
    if (hp_box_empty(inner)) return true;
    for (int a = 0; a < HP_AXES; a++)
        if (inner->lo[a] < outer->lo[a] || inner->hi[a] > outer->hi[a]) return false;
    return true;
}

hp_box hp_box_and(const hp_box *a, const hp_box *b) {
    hp_box r;
    for (int i = 0; i < HP_AXES; i++) {
        r.lo[i] = a->lo[i] > b->lo[i] ? a->lo[i] : b->lo[i];
        r.hi[i] = a->hi[i] < b->hi[i] ? a->hi[i] : b->hi[i];
    }
    return hp_box_empty(&r) ? (hp_box){{0}, {0}} : r;
}

hp_box hp_box_around(const hp_box *a, const hp_box *b) {
    hp_box r;
    if (hp_box_empty(a)) return *b;
    if (hp_box_empty(b)) return *a;
    for (int i = 0; i < HP_AXES; i++) {
        r.lo[i] = a->lo[i] < b->lo[i] ? a->lo[i] : b->lo[i];
        r.hi[i] = a->hi[i] > b->hi[i] ? a->hi[i] : b->hi[i];
    }
    return r;
}

hp_box hp_box_whole(const hp_graph *g, int tensor, int64_t samples) {
    const hp_tensor *t = &g->tensor[tensor];
    return (hp_box){{0}, {(int32_t)samples, t->h, t->w, t->c}};
}

/* --- splits --- */

/* Number of channels that must stay together: the outputs of one group of a grouped convolution, or one head.
 * All channels if blocks are summed or parameters are not contiguous per output channel. */
static int channel_unit(const hp_graph *g, int tensor) {
    if (g->tensor[tensor].tp_unit > 0) return g->tensor[tensor].tp_unit;
    const hp_layer *l = &g->layer[g->tensor[tensor].producer];
    if (hp_layer_is_whole(l) || hp_layer_adds_blocks(l)) return g->tensor[tensor].c;
    if (l->op == HP_ATTENTION) return hp_head_channels(g, l);
    return l->op == HP_CONV && l->groups > 1 ? g->tensor[tensor].c / l->groups : 1;
}

/* Number of parts of an axis, and the index of one. */
typedef struct share {
    int parts, k;
} share;

/* Splits each part of `outer` again. */
static share within(share outer, share inner) {
    return (share){outer.parts * inner.parts, outer.k * inner.parts + inner.k};
}

/* Extracts the next factor of the part's number. */
static share next(int *part, int parts) {
    const share s = {parts, *part % parts};
    *part /= parts;
    return s;
}

/* Decodes a part's number by the layout. Ranks that share rows of one tensor and channels of another use one
 * or the other. */
static void shares_of(const hp_layout *l, const hp_graph *g, int tensor, int part, share of[HP_AXES]) {
    const share tp = next(&part, l->tp), channel = next(&part, l->channels), seq = next(&part, l->seq);
    const bool heads = l->seq_by_heads && g->layer[g->tensor[tensor].producer].op == HP_ATTENTION;
    const share whole = {1, 0};
    const bool wide = g->tensor[tensor].tp_unit > 0;
    of[HP_AXIS_W] = next(&part, l->cols);
    of[HP_AXIS_H] = within(within(next(&part, l->rows), heads ? whole : seq), wide ? whole : tp);
    of[HP_AXIS_N] = (share){l->slices, part};
    of[HP_AXIS_C] = within(within(channel, wide ? tp : whole), heads ? seq : whole);
}

static int32_t start_of(const hp_layout *l, int axis, int64_t items, share s) {
    return axis == HP_AXIS_C ? hp_split_at(items, s.parts, s.k)
                             : hp_proportions_at(&l->by[axis], items, s.parts, s.k);
}

bool hp_layout_equal(const hp_layout *a, const hp_layout *b) {
    bool same = a->rows == b->rows && a->cols == b->cols && a->slices == b->slices &&
                a->channels == b->channels && a->tp == b->tp && a->seq == b->seq &&
                a->seq_by_heads == b->seq_by_heads;
    for (int axis = 0; axis < HP_AXIS_C; axis++) same &= hp_proportions_equal(&a->by[axis], &b->by[axis]);
    return same;
}

uint64_t hp_layout_hash(const hp_layout *l, uint64_t seed) {
    const int64_t key[] = {l->rows, l->cols, l->slices, l->channels, l->tp, l->seq, l->seq_by_heads};
    uint64_t hash = hp_hash64(key, sizeof key, seed);
    for (int axis = 0; axis < HP_AXIS_C; axis++)
        if (l->by[axis].n)
            hash = hp_hash64(l->by[axis].of, sizeof *l->by[axis].of * (size_t)l->by[axis].n, hash);
    return hash;
}

hp_box hp_layout_own(const hp_layout *l, const hp_graph *g, int tensor, int64_t samples, int part) {
    const hp_tensor *t = &g->tensor[tensor];
    const int unit = channel_unit(g, tensor);
    const int64_t items[HP_AXES] = {samples, t->h, t->w, t->c / unit};
    share of[HP_AXES];
    shares_of(l, g, tensor, part, of);
    hp_box b;
    for (int a = 0; a < HP_AXES; a++) {
        const int width = a == HP_AXIS_C ? unit : 1;
        b.lo[a] = width * start_of(l, a, items[a], of[a]);
        b.hi[a] = width * start_of(l, a, items[a], (share){of[a].parts, of[a].k + 1});
    }
    return b;
}

/* --- input --- */

/* The whole input of the output's samples: a dynamic quantisation range covers the whole map. */
static hp_box whole_need(const hp_graph *g, int tensor, const hp_box *out) {
    hp_box b = hp_box_whole(g, tensor, 1);
    b.lo[HP_AXIS_N] = out->lo[HP_AXIS_N];
    b.hi[HP_AXIS_N] = out->hi[HP_AXIS_N];
    return b;
}

hp_box hp_layer_need(const hp_graph *g, int layer, int k, const hp_box *out) {
    const hp_layer *l = &g->layer[layer];
    if (hp_box_empty(out)) return (hp_box){{0}, {0}};
    if (k == 0 && l->deployed.dynamic) return whole_need(g, l->in[0], out);
    hp_items r[HP_AXES];
    for (int a = 0; a < HP_AXES; a++) r[a] = (hp_items){out->lo[a], out->hi[a]};
    r[HP_AXIS_H] = hp_layer_reads_places(g, l, k, true, r[HP_AXIS_H]);
    r[HP_AXIS_W] = hp_layer_reads_places(g, l, k, false, r[HP_AXIS_W]);
    r[HP_AXIS_C] = hp_layer_reads_channels(g, l, k, r[HP_AXIS_C]);
    hp_box b;
    for (int a = 0; a < HP_AXES; a++) {
        b.lo[a] = (int32_t)r[a].lo;
        b.hi[a] = (int32_t)r[a].hi;
    }
    return hp_box_empty(&b) ? (hp_box){{0}, {0}} : b;
}

hp_box hp_layer_view(const hp_graph *g, const hp_box *need, const hp_box *have) {
    hp_box view = *have;
    if (!g->deployed || hp_box_len(have, HP_AXIS_N) != 1 || hp_box_empty(need)) return view;
    view.lo[HP_AXIS_H] = need->lo[HP_AXIS_H];
    view.hi[HP_AXIS_H] = need->hi[HP_AXIS_H];
    return view;
}

/* A convolution may leave fewer than `stride` rows at the bottom and columns at the right unread (negative
 * padding there). Pools compute their own windows. */
bool hp_layer_reads(const hp_graph *g, int layer, const hp_box *need, const hp_box *have) {
    const hp_layer *l = &g->layer[layer];
    if (hp_box_equal(need, have)) return true;
    if (!hp_box_within(need, have)) return false;
    const hp_box view = hp_layer_view(g, need, have);
    have = &view;
    if (hp_box_equal(need, have)) return true;
    const bool pool = l->op == HP_MAXPOOL || l->op == HP_AVGPOOL;
    if (!pool && l->op != HP_CONV) return false;
    const int slack[HP_AXES] = {1, pool ? INT32_MAX : l->window.stride_h,
                                pool ? INT32_MAX : l->window.stride_w, 1};
    for (int a = 0; a < HP_AXES; a++)
        if (need->lo[a] != have->lo[a] || have->hi[a] - need->hi[a] >= slack[a]) return false;
    return true;
}
