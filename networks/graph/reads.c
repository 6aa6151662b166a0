/* reads.c - what each operator reads of its inputs for a range of its output. */
#include "networks/graph/reads.h"

#include "networks/graph/attention.h"
#include "networks/graph/graph_gather.h"
#include "networks/graph/resample.h"
#include "networks/graph/summands.h"

/* Clips to [0, n); a range entirely in the padding becomes the nearest item, so that no buffer is empty. */
static hp_items clip(hp_items r, int64_t n) {
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

static hp_items window_range(hp_items out, window w) {
    return (hp_items){out.lo * w.stride - w.pad,
                      (out.hi - 1) * w.stride - w.pad + (int64_t)(w.k - 1) * w.dil + 1};
}

/* Does a tap of the transposed window of input item i fall on `out`? */
static bool taps_meet(hp_items out, window w, int64_t i) {
    for (int t = 0; t < w.k; t++) {
        const int64_t o = i * w.stride - w.pad + (int64_t)t * w.dil;
        if (o >= out.lo && o < out.hi) return true;
    }
    return false;
}

/* Input items whose windows overlap `out`. If windows have gaps between taps, the first and last item may not
 * contribute. */
static hp_items transposed_range(hp_items out, window w, int64_t n) {
    const hp_items r = {-floor_div(-(out.lo + w.pad - (int64_t)(w.k - 1) * w.dil), w.stride),
                        floor_div(out.hi - 1 + w.pad, w.stride) + 1};
    hp_items meet = {r.lo < 0 ? 0 : r.lo, r.hi > n ? n : r.hi};
    if (w.dil == 1) return r;
    while (meet.lo < meet.hi && !taps_meet(out, w, meet.lo)) meet.lo++;
    while (meet.hi > meet.lo && !taps_meet(out, w, meet.hi - 1)) meet.hi--;
    return meet.lo < meet.hi ? meet : (hp_items){r.lo, r.lo};
}

static hp_items adaptive_range(hp_items out, int in_n, int out_n) {
    return (hp_items){out.lo * in_n / out_n, (out.hi * in_n + out_n - 1) / out_n};
}

static hp_items resized_range(const hp_layer *l, bool rows, hp_items out, int in_n, int out_n) {
    const hp_resampling r = hp_resampling_of(l, rows, in_n, out_n);
    return (hp_items){hp_resample_at(&r, out.lo).lo, (int64_t)hp_resample_at(&r, out.hi - 1).hi + 1};
}

/* Second input of bn, add, mul or a deployed convolution: pixel by pixel, or one vector for all pixels. */
static hp_items second_range(hp_items out, int n) {
    return n == 1 ? (hp_items){0, 1} : out;
}

/* Rows or columns of keys and values. */
static hp_items attended_range(const hp_graph *g, const hp_layer *l, bool rows, hp_items out) {
    const hp_extent keys = hp_attention_keys(g, l, rows, (hp_extent){(int32_t)out.lo, (int32_t)out.hi});
    return (hp_items){keys.lo, keys.hi};
}

/* Token t > 0 is pixel t - 1 in row order; the class token has no pixel. */
static hp_items token_rows(hp_items out, const hp_tensor *in) {
    const int64_t first = out.lo > 0 ? out.lo - 1 : 0, last = out.hi > 1 ? out.hi - 2 : 0;
    return (hp_items){first / in->w, last / in->w + 1};
}

static hp_items widened(hp_items r, int64_t item) {
    return (hp_items){item < r.lo ? item : r.lo, item + 1 > r.hi ? item + 1 : r.hi};
}

/* Where rows reflect at a border, the extreme ones lie at the ends or at the reflection. */
static hp_items gathered_range(const hp_layer *l, bool rows, hp_items out, int64_t in) {
    const int64_t block = rows ? l->window.kh : l->window.kw, pad = rows ? l->window.pad_h : l->window.pad_w,
                  n = in * block;
    const int64_t at[4] = {out.lo - pad, out.hi - 1 - pad, 0, n - 1};
    const int64_t from = hp_gather_row(l->gather.border, at[0], n);
    hp_items r = {from, from + 1};
    for (int i = 1; i < 4; i++)
        if (at[i] >= at[0] && at[i] <= at[1]) r = widened(r, hp_gather_row(l->gather.border, at[i], n));
    return (hp_items){r.lo / block, (r.hi - 1) / block + 1};
}

static window window_of(const hp_layer *l, bool rows) {
    if (l->op == HP_MERGE) return (window){2, 2, 0, 1};
    const int dil = rows ? l->window.dil_h : l->window.dil_w,
              stride = rows ? l->window.stride_h : l->window.stride_w;
    return (window){rows ? l->window.kh : l->window.kw, stride > 0 ? stride : 1,
                    rows ? l->window.pad_h : l->window.pad_w, dil > 0 ? dil : 1};
}

hp_items hp_layer_reads_places(const hp_graph *g, const hp_layer *l, int k, bool rows, hp_items out) {
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
        return clip((hp_items){out.lo - pad, out.hi - pad}, n);
    }
    case HP_ADAPTPOOL:
        return adaptive_range(out, n, rows ? y->h : y->w);
    case HP_RESIZE:
        return resized_range(l, rows, out, n, rows ? y->h : y->w);
    case HP_CROP: {
        const int from = rows ? l->window.pad_h : l->window.pad_w;
        return (hp_items){out.lo + from, out.hi + from};
    }
    case HP_CLASSTOKEN:
        return rows ? token_rows(out, in) : (hp_items){0, n};
    case HP_GATHER:
        return gathered_range(l, rows, out, n);
    case HP_LINEAR:
    case HP_GROUPNORM:
        return (hp_items){0, n};
    default:
        return out;
    }
}

/* Channels of the query heads that contain `out`, or of the key and value heads that these share. */
static hp_items head_range(const hp_graph *g, const hp_layer *l, int k, hp_items out) {
    const int head = hp_head_channels(g, l), shared = k == 0 ? 1 : l->groups / l->attention.kv_heads;
    return (hp_items){out.lo / head / shared * head,
                      ((out.hi + head - 1) / head + shared - 1) / shared * head};
}

/* Each of four pixels provides a quarter of the channels. */
static hp_items merged_range(hp_items out, int c) {
    const bool one = out.lo / c == (out.hi - 1) / c;
    return one ? (hp_items){out.lo % c, (out.hi - 1) % c + 1} : (hp_items){0, c};
}

/* Input channels of the summands that form `out`. */
static hp_items summed_range(const hp_graph *g, const hp_layer *l, hp_items out) {
    const int width = g->tensor[l->out].c / hp_summands(l);
    return (hp_items){hp_summand_at(g, l, (int)(out.lo / width)).in_lo,
                      hp_summand_at(g, l, (int)((out.hi - 1) / width)).in_hi};
}

hp_items hp_layer_reads_channels(const hp_graph *g, const hp_layer *l, int k, hp_items out) {
    const hp_tensor *in = &g->tensor[l->in[k]];
    if (hp_layer_adds(l) && k == l->n_in - 1) return out;
    if (l->op == HP_LINEAR || l->op == HP_CONVT || l->op == HP_SOFTMAX || l->op == HP_LAYERNORM ||
        l->op == HP_RMSNORM || l->op == HP_EMBEDDING || l->op == HP_REDUCE ||
        l->op == HP_GATHER) /* whole maps are read in place */
        return (hp_items){0, in->c};
    if (l->tp == (int32_t)HP_TP_ROW) return summed_range(g, l, out);
    if (hp_layer_adds_blocks(l)) return (hp_items){0, in->c};
    if (l->op == HP_ATTENTION) return head_range(g, l, k, out);
    if (l->op == HP_MERGE) return merged_range(out, in->c);
    if (l->op == HP_CONV || l->op == HP_GROUPNORM) {
        const int groups = l->groups > 1 ? l->groups : 1;
        const int outs = g->tensor[l->out].c / groups, ins = in->c / groups;
        return (hp_items){out.lo / outs * ins, (out.hi + outs - 1) / outs * ins};
    }
    if (l->op == HP_CONCAT) {
        int64_t before = 0;
        for (int i = 0; i < k; i++) before += g->tensor[l->in[i]].c;
        const hp_items r = {out.lo - before, out.hi - before};
        return (hp_items){r.lo < 0 ? 0 : r.lo, r.hi > in->c ? in->c : r.hi};
    }
    return out;
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
