/* tile.c - boxes, even splits, and the input that a layer needs for a part of its output. */
#include "plan/tiles/tile.h"

#include "networks/graph/attention.h"
#include "networks/graph/graph_gather.h"
#include "networks/graph/resample.h"
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

/* Does the kernel add up whole blocks, each as wide as its output? */
static bool adds_blocks(const hp_layer *l) {
    return l->op == HP_SUM && hp_summands(l) > 1;
}

/* Number of channels that must stay together: the outputs of one group of a grouped convolution, or one head.
 * All channels if blocks are summed or parameters are not contiguous per output channel. */
static int channel_unit(const hp_graph *g, int tensor) {
    if (g->tensor[tensor].tp_unit > 0) return g->tensor[tensor].tp_unit;
    const hp_layer *l = &g->layer[g->tensor[tensor].producer];
    if (hp_layer_is_whole(l) || adds_blocks(l)) return g->tensor[tensor].c;
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

/* --- input ranges --- */

typedef struct range {
    int64_t lo, hi;
} range;

/* Clips to [0, n); a range entirely in the padding becomes the nearest item, so that no buffer is empty. */
static range clip(range r, int64_t n) {
    r.lo = r.lo < 0 ? 0 : r.lo > n - 1 ? n - 1 : r.lo;
    r.hi = r.hi > n ? n : r.hi < r.lo + 1 ? r.lo + 1 : r.hi;
    return r;
}

static int64_t floor_div(int64_t a, int64_t b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

typedef struct window {
    int k, stride, pad, dil;
} window;

static range window_range(range out, window w) {
    return (range){out.lo * w.stride - w.pad,
                   (out.hi - 1) * w.stride - w.pad + (int64_t)(w.k - 1) * w.dil + 1};
}

/* Does a tap of the transposed window of input item i fall on `out`? */
static bool taps_meet(range out, window w, int64_t i) {
    for (int t = 0; t < w.k; t++) {
        const int64_t o = i * w.stride - w.pad + (int64_t)t * w.dil;
        if (o >= out.lo && o < out.hi) return true;
    }
    return false;
}

/* Input items whose windows overlap `out`. If windows have gaps between taps, the first and last item may not
 * contribute. */
static range transposed_range(range out, window w, int64_t n) {
    const range r = {-floor_div(-(out.lo + w.pad - (int64_t)(w.k - 1) * w.dil), w.stride),
                     floor_div(out.hi - 1 + w.pad, w.stride) + 1};
    range meet = {r.lo < 0 ? 0 : r.lo, r.hi > n ? n : r.hi};
    if (w.dil == 1) return r;
    while (meet.lo < meet.hi && !taps_meet(out, w, meet.lo)) meet.lo++;
    while (meet.hi > meet.lo && !taps_meet(out, w, meet.hi - 1)) meet.hi--;
    return meet.lo < meet.hi ? meet : (range){r.lo, r.lo};
}

static range adaptive_range(range out, int in_n, int out_n) {
    return (range){out.lo * in_n / out_n, (out.hi * in_n + out_n - 1) / out_n};
}

static range resized_range(const hp_layer *l, bool rows, range out, int in_n, int out_n) {
    const hp_resampling r = hp_resampling_of(l, rows, in_n, out_n);
    return (range){hp_resample_at(&r, out.lo).lo, (int64_t)hp_resample_at(&r, out.hi - 1).hi + 1};
}

/* Second input of bn, add, mul or a deployed convolution: pixel by pixel, or one vector for all pixels. */
static range second_range(range out, int n) {
    return n == 1 ? (range){0, 1} : out;
}

/* Rows or columns of keys and values. */
static range attended_range(const hp_graph *g, const hp_layer *l, bool rows, range out) {
    const hp_extent keys = hp_attention_keys(g, l, rows, (hp_extent){(int32_t)out.lo, (int32_t)out.hi});
    return (range){keys.lo, keys.hi};
}

/* Token t > 0 is pixel t - 1 in row order; the class token has no pixel. */
static range token_rows(range out, const hp_tensor *in) {
    const int64_t first = out.lo > 0 ? out.lo - 1 : 0, last = out.hi > 1 ? out.hi - 2 : 0;
    return (range){first / in->w, last / in->w + 1};
}

static range widened(range r, int64_t item) {
    return (range){item < r.lo ? item : r.lo, item + 1 > r.hi ? item + 1 : r.hi};
}

/* Where rows reflect at a border, the extreme ones lie at the ends or at the reflection. */
static range gathered_range(const hp_layer *l, bool rows, range out, int64_t in) {
    const int64_t block = rows ? l->window.kh : l->window.kw, pad = rows ? l->window.pad_h : l->window.pad_w,
                  n = in * block;
    const int64_t at[4] = {out.lo - pad, out.hi - 1 - pad, 0, n - 1};
    const int64_t from = hp_gather_row(l->gather.border, at[0], n);
    range r = {from, from + 1};
    for (int i = 1; i < 4; i++)
        if (at[i] >= at[0] && at[i] <= at[1]) r = widened(r, hp_gather_row(l->gather.border, at[i], n));
    return (range){r.lo / block, (r.hi - 1) / block + 1};
}

static window window_of(const hp_layer *l, bool rows) {
    if (l->op == HP_MERGE) return (window){2, 2, 0, 1};
    const int dil = rows ? l->window.dil_h : l->window.dil_w,
              stride = rows ? l->window.stride_h : l->window.stride_w;
    return (window){rows ? l->window.kh : l->window.kw, stride > 0 ? stride : 1,
                    rows ? l->window.pad_h : l->window.pad_w, dil > 0 ? dil : 1};
}

/* The rows (or columns) of input k that rows (columns) `out` of the output depend on. */
static range map_range(const hp_graph *g, const hp_layer *l, int k, bool rows, range out) {
    const hp_tensor *in = &g->tensor[l->in[k]], *y = &g->tensor[l->out];
    const int n = rows ? in->h : in->w;
    if (l->op == HP_ATTENTION) return k == 0 ? out : attended_range(g, l, rows, out);
    if (k > 0 && l->op != HP_CONCAT) return second_range(out, n);
    switch (l->op) {
    case HP_CONV:
    case HP_MAXPOOL:
    case HP_AVGPOOL:
    case HP_MERGE:
        return clip(window_range(out, window_of(l, rows)), n);
    case HP_CONVT:
        return clip(transposed_range(out, window_of(l, rows), n), n);
    case HP_PAD: {
        const int pad = rows ? l->window.pad_h : l->window.pad_w;
        return clip((range){out.lo - pad, out.hi - pad}, n);
    }
    case HP_ADAPTPOOL:
        return adaptive_range(out, n, rows ? y->h : y->w);
    case HP_RESIZE:
        return resized_range(l, rows, out, n, rows ? y->h : y->w);
    case HP_CROP: {
        const int from = rows ? l->window.pad_h : l->window.pad_w;
        return (range){out.lo + from, out.hi + from};
    }
    case HP_CLASSTOKEN:
        return rows ? token_rows(out, in) : (range){0, n};
    case HP_GATHER:
        return gathered_range(l, rows, out, n);
    case HP_LINEAR:
    case HP_GROUPNORM:
        return (range){0, n};
    default:
        return out;
    }
}

/* Channels of the query heads that contain `out`, or of the key and value heads that these share. */
static range head_range(const hp_graph *g, const hp_layer *l, int k, range out) {
    const int head = hp_head_channels(g, l), shared = k == 0 ? 1 : l->groups / l->attention.kv_heads;
    return (range){out.lo / head / shared * head, ((out.hi + head - 1) / head + shared - 1) / shared * head};
}

/* Each of four pixels provides a quarter of the channels. */
static range merged_range(range out, int c) {
    const bool one = out.lo / c == (out.hi - 1) / c;
    return one ? (range){out.lo % c, (out.hi - 1) % c + 1} : (range){0, c};
}

/* Input channels of the summands that form `out`. */
static range summed_range(const hp_graph *g, const hp_layer *l, range out) {
    const int width = g->tensor[l->out].c / hp_summands(l);
    return (range){hp_summand_at(g, l, (int)(out.lo / width)).in_lo,
                   hp_summand_at(g, l, (int)((out.hi - 1) / width)).in_hi};
}

static range channel_range(const hp_graph *g, const hp_layer *l, int k, range out) {
    const hp_tensor *in = &g->tensor[l->in[k]];
    if (hp_layer_adds(l) && k == l->n_in - 1) return out;
    if (l->op == HP_LINEAR || l->op == HP_CONVT || l->op == HP_SOFTMAX || l->op == HP_LAYERNORM ||
        l->op == HP_RMSNORM || l->op == HP_EMBEDDING || l->op == HP_REDUCE ||
        l->op == HP_GATHER) /* whole maps are read in place */
        return (range){0, in->c};
    if (l->tp == (int32_t)HP_TP_ROW) return summed_range(g, l, out);
    if (adds_blocks(l)) return (range){0, in->c};
    if (l->op == HP_ATTENTION) return head_range(g, l, k, out);
    if (l->op == HP_MERGE) return merged_range(out, in->c);
    if (l->op == HP_CONV || l->op == HP_GROUPNORM) {
        const int groups = l->groups > 1 ? l->groups : 1;
        const int outs = g->tensor[l->out].c / groups, ins = in->c / groups;
        return (range){out.lo / outs * ins, (out.hi + outs - 1) / outs * ins};
    }
    if (l->op == HP_CONCAT) {
        int64_t before = 0;
        for (int i = 0; i < k; i++) before += g->tensor[l->in[i]].c;
        const range r = {out.lo - before, out.hi - before};
        return (range){r.lo < 0 ? 0 : r.lo, r.hi > in->c ? in->c : r.hi};
    }
    return out;
}

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
    range r[HP_AXES];
    for (int a = 0; a < HP_AXES; a++) r[a] = (range){out->lo[a], out->hi[a]};
    r[HP_AXIS_H] = map_range(g, l, k, true, r[HP_AXIS_H]);
    r[HP_AXIS_W] = map_range(g, l, k, false, r[HP_AXIS_W]);
    r[HP_AXIS_C] = channel_range(g, l, k, r[HP_AXIS_C]);
    hp_box b;
    for (int a = 0; a < HP_AXES; a++) {
        b.lo[a] = (int32_t)r[a].lo;
        b.hi[a] = (int32_t)r[a].hi;
    }
    return hp_box_empty(&b) ? (hp_box){{0}, {0}} : b;
}

/* Does a pixel of the resized map read beyond the input pixel that contains it? */
static bool resize_has_halo(const hp_layer *l, const hp_tensor *x, const hp_tensor *y) {
    const bool whole_times = l->resize.scale_h == 0 && y->h % x->h == 0 && y->w % x->w == 0;
    return l->resize.interpolation != HP_NEAREST || l->resize.corners == HP_CORNERS_ALIGN || !whole_times;
}

bool hp_layer_reads_all_rows(const hp_graph *g, int layer) {
    const hp_layer *l = &g->layer[layer];
    const bool moves = l->op == HP_CLASSTOKEN || l->op == HP_CROP ||
                       (l->op == HP_GATHER && l->gather.border); /* its rows are others */
    return l->op == HP_LINEAR || l->op == HP_GROUPNORM || l->deployed.dynamic || moves ||
           (l->op == HP_ATTENTION && !hp_layer_is_windowed(l)) ||
           (l->op == HP_ADAPTPOOL && l->out_h != g->tensor[l->in[0]].h);
}

bool hp_layer_has_halo(const hp_graph *g, int layer) {
    const hp_layer *l = &g->layer[layer];
    if (hp_layer_is_windowed(l)) return l->window.kh > 1 || l->window.kw > 1;
    if (l->op == HP_RESIZE) return resize_has_halo(l, &g->tensor[l->in[0]], &g->tensor[l->out]);
    if (l->op == HP_CONVT)
        return (l->window.kh - 1) * l->window.dil_h + 1 > l->window.stride_h ||
               (l->window.kw - 1) * l->window.dil_w + 1 > l->window.stride_w;
    if (l->op != HP_CONV && l->op != HP_MAXPOOL && l->op != HP_AVGPOOL) return false;
    const window h = window_of(l, true), w = window_of(l, false);
    return (h.k - 1) * h.dil + 1 > h.stride || (w.k - 1) * w.dil + 1 > w.stride;
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
