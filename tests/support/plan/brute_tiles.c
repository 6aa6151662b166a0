/* brute_tiles.c - which inputs every output of a layer reads, from the layers' definitions;
 * see brute_tiles.h. */
#include "tests/support/plan/brute_tiles.h"

#include "networks/graph/graph_gather.h"

typedef struct tap_call {
    const hp_graph *g;
    const hp_layer *l;
    int k, axis; /* index of the input; the axis */
    tap_fn *visit;
    void *state;
} tap_call;

int axis_of(const hp_tensor *t, int axis) {
    return axis == HP_AXIS_H ? t->h : axis == HP_AXIS_W ? t->w : t->c;
}

static int taps_in(const tap_call *c) {
    return axis_of(&c->g->tensor[c->l->in[c->k]], c->axis);
}

static int taps_out(const tap_call *c) {
    return axis_of(&c->g->tensor[c->l->out], c->axis);
}

static double by_axis_real(const tap_call *c, double rows, double cols) {
    return c->axis == HP_AXIS_H ? rows : cols;
}

static int by_axis(const tap_call *c, int rows, int cols) {
    return c->axis == HP_AXIS_H ? rows : cols;
}

/* --- one axis of one layer --- */

static void taps_same(const tap_call *c, int o) {
    c->visit(c->state, o, 0);
}

static void taps_all(const tap_call *c, int o) {
    (void)o;
    for (int i = 0; i < taps_in(c); i++) c->visit(c->state, i, i);
}

static void taps_window(const tap_call *c, int o) {
    const hp_layer *l = c->l;
    const int first =
        o * by_axis(c, l->window.stride_h, l->window.stride_w) - by_axis(c, l->window.pad_h, l->window.pad_w);
    for (int t = 0; t < by_axis(c, l->window.kh, l->window.kw); t++)
        c->visit(c->state, first + t * by_axis(c, l->window.dil_h, l->window.dil_w), t);
}

/* Input item i, times the window, is added to the outputs from i * stride - pad on. */
static void taps_transposed(const tap_call *c, int o) {
    const hp_layer *l = c->l;
    const int stride = by_axis(c, l->window.stride_h, l->window.stride_w),
              dil = by_axis(c, l->window.dil_h, l->window.dil_w);
    for (int i = 0; i < taps_in(c); i++)
        for (int t = 0; t < by_axis(c, l->window.kh, l->window.kw); t++)
            if (i * stride - by_axis(c, l->window.pad_h, l->window.pad_w) + t * dil == o)
                c->visit(c->state, i, t);
}

/* Reads floor(o * in / out) to ceil((o + 1) * in / out). */
static void taps_adaptive(const tap_call *c, int o) {
    const int64_t n = taps_in(c), m = taps_out(c);
    for (int64_t i = 0; i < n; i++)
        if ((i + 1) * m > o * n && i * m < (o + 1) * n) c->visit(c->state, (int)i, 0);
}

static void taps_pad(const tap_call *c, int o) {
    c->visit(c->state, o - by_axis(c, c->l->window.pad_h, c->l->window.pad_w), 0);
}

/* Twice the distance of output item o from input item i (doubled so that half pixels are integers), and the
 * size of an input pixel in these units; ONNX Resize, coordinate_transformation_mode. */
static int64_t resize_distance(const tap_call *c, int o, int i, int64_t *pixel) {
    const int64_t n = taps_in(c), m = taps_out(c),
                  sixteenths = (int64_t)(16 * by_axis_real(c, c->l->resize.scale_h, c->l->resize.scale_w));
    const bool alone = m == 1 && (c->l->resize.corners == HP_CORNERS_ALIGN ||
                                  c->l->resize.corners == HP_CORNERS_PYTORCH_HALF_PIXEL);
    *pixel = alone ? 2 : c->l->resize.corners == HP_CORNERS_ALIGN ? 2 * (m - 1) : 2 * m;
    if (alone) return -2 * (int64_t)i;
    if (sixteenths > 0) *pixel = 2 * sixteenths;
    if (sixteenths > 0)
        return (c->l->resize.corners == HP_CORNERS_ASYMMETRIC ? 32 * (int64_t)o
                                                              : 16 * (2 * (int64_t)o + 1) - sixteenths) -
               2 * i * sixteenths;
    if (c->l->resize.corners == HP_CORNERS_ALIGN) return 2 * (o * (n - 1) - i * (m - 1));
    if (c->l->resize.corners == HP_CORNERS_ASYMMETRIC) return 2 * (o * n - i * m);
    return (2 * o + 1) * n - m - 2 * i * m; /* half pixels: (o + 1/2) n / m - 1/2 */
}

static int nearest_inside(const tap_call *c, int64_t i) {
    return (int)(i < 0 ? 0 : i >= taps_in(c) ? taps_in(c) - 1 : i);
}

/* Reads from one pixel before the coordinate's pixel to two after it. */
static void taps_cubic(const tap_call *c, int o) {
    int64_t pixel, below = -2;
    const int64_t d = resize_distance(c, o, 0, &pixel);
    while ((below + 1) * pixel <= d) below++;
    for (int i = nearest_inside(c, below - 1); i <= nearest_inside(c, below + 2); i++)
        c->visit(c->state, i, 0);
}

/* Nearest: the closest pixel, the first of two; asymmetric: the last one at or before the coordinate. Linear:
 * those less than a pixel away, or the one at the border. */
static void taps_resize(const tap_call *c, int o) {
    int64_t pixel, least = INT64_MAX;
    if (c->l->resize.interpolation == HP_CUBIC) {
        taps_cubic(c, o);
        return;
    }
    int best = 0;
    const bool last = c->l->resize.corners == HP_CORNERS_ASYMMETRIC;
    for (int i = 0; i < taps_in(c); i++) {
        const int64_t d = resize_distance(c, o, i, &pixel), away = d < 0 ? -d : d;
        if (c->l->resize.interpolation == HP_BILINEAR) {
            const bool border = (i == 0 && d < 0) || (i == taps_in(c) - 1 && d > 0);
            if (away < pixel || border) c->visit(c->state, i, 0);
        } else if (last ? d >= 0 : away < least) {
            best = i;
            least = away;
        }
    }
    if (c->l->resize.interpolation == HP_NEAREST) c->visit(c->state, best, 0);
}

/* A second input: per pixel, or one vector for all. */
static void taps_second(const tap_call *c, int o) {
    c->visit(c->state, taps_in(c) == 1 ? 0 : o, 0);
}

/* Output channels of a group read the input channels of that group. */
static void taps_grouped(const tap_call *c, int o) {
    const int groups = c->l->groups, ins = taps_in(c) / groups, group = o / (taps_out(c) / groups);
    for (int i = 0; i < ins; i++) c->visit(c->state, group * ins + i, i);
}

/* The channels of the inputs, concatenated. */
static void taps_joined(const tap_call *c, int o) {
    int k = 0;
    while (o >= c->g->tensor[c->l->in[k]].c) o -= c->g->tensor[c->l->in[k++]].c;
    if (k == c->k) c->visit(c->state, o, 0);
}

/* Windows are numbered from the line at `shift` on. */
static int window_number(int i, int window, int shift) {
    int k = 0;
    while (shift + k * window > i) k--;
    while (shift + (k + 1) * window <= i) k++;
    return k;
}

/* Along an axis: what any query in that row or column attends to. */
static void taps_attended(const tap_call *c, int o) {
    const hp_layer *l = c->l;
    const int window = by_axis(c, l->window.kh, l->window.kw),
              shift = by_axis(c, l->window.pad_h, l->window.pad_w);
    for (int i = 0; i < taps_in(c); i++) {
        const bool near = !window || window_number(i, window, shift) == window_number(o, window, shift),
                   before = !l->attention.causal || c->axis != HP_AXIS_H || i <= o;
        if (c->k == 0 ? i == o : near && before) c->visit(c->state, i, 0);
    }
}

/* The head, or the one that it shares. */
static void taps_head(const tap_call *c, int o) {
    const int head = taps_out(c) / c->l->groups, shared = c->k ? c->l->groups / c->l->attention.kv_heads : 1;
    for (int i = 0; i < head; i++) c->visit(c->state, o / head / shared * head + i, 0);
}

static void taps_token(const tap_call *c, int o) {
    const int w = c->g->tensor[c->l->in[0]].w;
    if (c->axis == HP_AXIS_W) taps_all(c, o);
    if (c->axis == HP_AXIS_H && o > 0) c->visit(c->state, (o - 1) / w, 0);
}

static void taps_crop(const tap_call *c, int o) {
    c->visit(c->state, o + by_axis(c, c->l->window.pad_h, c->l->window.pad_w), 0);
}

static void taps_pair(const tap_call *c, int o) {
    c->visit(c->state, 2 * o, 0);
    c->visit(c->state, 2 * o + 1, 1);
}

/* Blocks with as many channels as the output. */
static void taps_blocks(const tap_call *c, int o) {
    for (int i = o; i < taps_in(c); i += taps_out(c)) c->visit(c->state, i, 0);
}

static void taps_quarter(const tap_call *c, int o) {
    c->visit(c->state, o % taps_in(c), 0);
}

/* numpy.pad: a reflected map has a period of 2 (n - 1) rows, a symmetric one of 2 n. A row equals the one at
 * the smaller distance from the start of its period. */
static int bordered(int border, int at, int n) {
    const int turn = border == HP_BORDER_SYMMETRIC, period = 2 * (turn ? n : n - 1);
    if (border == HP_BORDER_EDGE) return at < 0 ? 0 : at < n ? at : n - 1;
    if (border == HP_BORDER_NONE || period == 0) return at;
    at = (at % period + period) % period;
    return at < n ? at : period - turn - at;
}

static void taps_place(const tap_call *c, int o) {
    const int block = by_axis(c, c->l->window.kh, c->l->window.kw),
              pad = by_axis(c, c->l->window.pad_h, c->l->window.pad_w);
    c->visit(c->state, bordered(c->l->gather.border, o - pad, taps_in(c) * block) / block, 0);
}

typedef void axis_fn(const tap_call *c, int o);

static axis_fn *const taps_of_pixels[HP_LAYER_OPS] = {
    [HP_CONV] = taps_window,    [HP_CONVT] = taps_transposed, [HP_LINEAR] = taps_all,
    [HP_BN] = taps_same,        [HP_ACT] = taps_same,         [HP_ADD] = taps_same,
    [HP_MAXPOOL] = taps_window, [HP_AVGPOOL] = taps_window,   [HP_ADAPTPOOL] = taps_adaptive,
    [HP_PAD] = taps_pad,        [HP_CONCAT] = taps_same,      [HP_DROPOUT] = taps_same,
    [HP_MUL] = taps_same,       [HP_SCALE] = taps_same,       [HP_RESIZE] = taps_resize,
    [HP_SOFTMAX] = taps_same,   [HP_QUANT] = taps_same,       [HP_DEQUANT] = taps_same,
    [HP_LAYERNORM] = taps_same, [HP_RMSNORM] = taps_same,     [HP_ATTENTION] = taps_attended,
    [HP_EMBEDDING] = taps_same, [HP_POSITION] = taps_same,    [HP_CLASSTOKEN] = taps_token,
    [HP_CROP] = taps_crop,      [HP_MERGE] = taps_pair,       [HP_SUM] = taps_same,
    [HP_PRELU] = taps_same,     [HP_GATHER] = taps_place,     [HP_REDUCE] = taps_same,
    [HP_GROUPNORM] = taps_all};

static axis_fn *const taps_of_channels[HP_LAYER_OPS] = {
    [HP_CONV] = taps_grouped,     [HP_CONVT] = taps_all,     [HP_LINEAR] = taps_all,
    [HP_BN] = taps_same,          [HP_ACT] = taps_same,      [HP_ADD] = taps_same,
    [HP_MAXPOOL] = taps_same,     [HP_AVGPOOL] = taps_same,  [HP_ADAPTPOOL] = taps_same,
    [HP_PAD] = taps_same,         [HP_CONCAT] = taps_joined, [HP_DROPOUT] = taps_same,
    [HP_MUL] = taps_same,         [HP_SCALE] = taps_same,    [HP_RESIZE] = taps_same,
    [HP_SOFTMAX] = taps_all,      [HP_QUANT] = taps_same,    [HP_DEQUANT] = taps_same,
    [HP_LAYERNORM] = taps_all,    [HP_RMSNORM] = taps_all,   [HP_ATTENTION] = taps_head,
    [HP_EMBEDDING] = taps_all,    [HP_POSITION] = taps_same, [HP_CLASSTOKEN] = taps_same,
    [HP_CROP] = taps_same,        [HP_MERGE] = taps_quarter, [HP_SUM] = taps_blocks,
    [HP_PRELU] = taps_same,       [HP_GATHER] = taps_all,    [HP_REDUCE] = taps_all,
    [HP_GROUPNORM] = taps_grouped};

void brute_taps(const hp_graph *g, int layer, int k, int axis, int o, tap_fn *visit, void *state) {
    const tap_call c = {g, &g->layer[layer], k, axis, visit, state};
    if (axis == HP_AXIS_N) {
        taps_same(&c, o);
    } else if (k > 0 && c.l->op != HP_CONCAT && c.l->op != HP_ATTENTION) {
        (axis == HP_AXIS_C ? taps_same : taps_second)(&c, o);
    } else {
        (axis == HP_AXIS_C ? taps_of_channels : taps_of_pixels)[c.l->op](&c, o);
    }
}

/* --- hulls --- */

static void widen(int *lo, int *hi, int item) {
    const bool none = *lo == *hi;
    *lo = none || item < *lo ? item : *lo;
    *hi = none || item + 1 > *hi ? item + 1 : *hi;
}

static void hull_add(void *state, int in, int weight) {
    hull *h = state;
    (void)weight;
    widen(&h->lo, &h->hi, in);
    if (in >= 0 && in < h->n) widen(&h->first, &h->end, in);
}

hull brute_hull(const hp_graph *g, int layer, int k, int axis, const hp_box *out) {
    const hp_tensor *x = &g->tensor[g->layer[layer].in[k]];
    hull h = {.n = axis == HP_AXIS_N ? out->hi[axis] : axis_of(x, axis)};
    for (int o = out->lo[axis]; o < out->hi[axis]; o++) brute_taps(g, layer, k, axis, o, hull_add, &h);
    return h;
}

/* The first item whose transposed window ends at or after output item o. */
static int item_after(const hp_layer *l, int axis, int o) {
    const bool rows = axis == HP_AXIS_H;
    const int reach = rows ? (l->window.kh - 1) * l->window.dil_h : (l->window.kw - 1) * l->window.dil_w,
              pad = rows ? l->window.pad_h : l->window.pad_w,
              stride = rows ? l->window.stride_h : l->window.stride_w;
    int i = 0;
    while (i * stride - pad + reach < o) i++;
    return i;
}

hp_box brute_need(const hp_graph *g, int layer, int k, const hp_box *out) {
    hp_box b;
    if (hp_box_empty(out)) return (hp_box){{0}, {0}};
    for (int a = 0; a < HP_AXES; a++) {
        const hull h = brute_hull(g, layer, k, a, out);
        const bool pixels = a == HP_AXIS_H || a == HP_AXIS_W;
        if (!pixels && h.first == h.end) return (hp_box){{0}, {0}};
        b.lo[a] = h.lo < 0 ? 0 : h.lo;
        if (h.lo == h.hi) b.lo[a] = item_after(&g->layer[layer], a, out->lo[a]);
        b.hi[a] = h.hi > h.n ? h.n : h.hi;
        if (b.lo[a] >= h.n) b.lo[a] = h.n - 1;
        if (b.hi[a] <= b.lo[a]) b.hi[a] = b.lo[a] + 1;
    }
    return b;
}

/* --- gradients --- */

bool *wanted_gradients(hp_arena *arena, const hp_graph *g) {
    bool *live = HP_NEW(arena, bool, g->n_tensor), *learns = HP_NEW(arena, bool, g->n_tensor);
    live[g->layer[g->n_layer - 1].out] = true;
    for (int l = g->n_layer - 1; l > 0; l--)
        for (int k = 0; k < g->layer[l].n_in; k++) live[g->layer[l].in[k]] |= live[g->layer[l].out];
    for (int l = 1; l < g->n_layer; l++) {
        const hp_layer *layer = &g->layer[l];
        learns[layer->out] = layer->n_param > 0;
        for (int k = 0; k < layer->n_in; k++) learns[layer->out] |= learns[layer->in[k]];
    }
    for (int t = 0; t < g->n_tensor; t++) live[t] &= learns[t];
    return live;
}
