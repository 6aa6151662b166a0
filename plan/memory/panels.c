/* panels.c - sizes of packed constants; see panels.h. */
#include "plan/memory/panels.h"
#include "base/round.h"

enum { LINES = 64 }; /* bytes of a cache line and of a vector */

/* Bytes of an input element and of a weight; inputs per step. */
typedef struct kind {
    int32_t elem, weight, dot;
} kind;

static const kind kinds[HP_DTYPES] = {
    [HP_F32] = {4, 4, 1}, [HP_U8] = {1, 1, 4}, [HP_BF16] = {2, 2, 2}, [HP_F16] = {2, 2, 1}};

/* These rules look at the whole layer, so that all slices of its channels are computed alike. The kernel
 * holds all columns of a filter, 4 rows each, at once. Raw pixels have a separate zero point per channel. */
static bool is_depthwise(const hp_graph *g, const hp_layer *l) {
    const hp_tensor *x = &g->tensor[l->in[0]];
    const int64_t columns = (int64_t)(l->window.kw - 1) * (l->window.dil_w > 1 ? l->window.dil_w : 1) + 1;
    return l->op == HP_CONV && l->groups > 1 && l->groups == x->c && l->groups == g->tensor[l->out].c &&
           (x->producer > 0 || x->store != HP_STORE_U8) &&
           columns * ((l->window.kh + 3) / 4) <= HP_DEPTHWISE_COLUMNS;
}

static bool side_by_side(const hp_layer *l) {
    return l->op == HP_LINEAR || (l->op == HP_CONV && l->groups < 2 && l->window.dil_w < 2);
}

static void set_steps(hp_panels *p, bool neighbours) {
    p->merged = hp_panels_whole_steps(p) || neighbours;
    p->tap_steps = (p->ins + p->dot - 1) / p->dot;
    p->row_steps =
        p->merged ? (int32_t)(((int64_t)p->kw * p->ins + p->dot - 1) / p->dot) : p->kw * p->tap_steps;
    p->padded = (int32_t)hp_round_up(p->outs, HP_PANEL_LANES);
}

/* Steps run down the columns of taps: 4 rows, or one. */
static void set_depthwise(hp_panels *p, int32_t channels) {
    p->groups = p->ins = 1;
    p->outs = channels;
    p->tap_steps = (p->kh + p->dot - 1) / p->dot;
    p->row_steps = p->kw;
    p->padded = (int32_t)hp_round_up(channels, p->x == HP_U8 ? HP_PANEL_OUTS : HP_PANEL_LANES);
}

hp_panels hp_panels_of(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real) {
    const hp_layer *l = &g->layer[layer];
    const hp_dtype x = l->deployed.dynamic ? HP_U8 : hp_tensor_dtype(&g->tensor[l->in[0]], real);
    const bool ref = real == HP_F64; /* float32 weights */
    const kind k = ref && x != HP_U8 ? (kind){hp_dtype_bytes(x), 4, 1} : kinds[x];
    const int32_t groups = s->groups > 0 ? s->groups : 1;
    hp_panels p = {.x = x,
                   .transposed = l->op == HP_CONVT,
                   .depthwise = !ref && is_depthwise(g, l),
                   .groups = groups,
                   .outs = s->oc / groups,
                   .ins = s->ic / groups,
                   .kh = s->kh,
                   .kw = s->kw,
                   .sums = l->op == HP_LINEAR ? 1 : s->kh * s->kw,
                   .elem = k.elem,
                   .weight = k.weight,
                   .dot = k.dot,
                   .map = l->deployed.dynamic ? (int64_t)s->ih * s->iw * s->ic : 0};
    if (p.depthwise)
        set_depthwise(&p, s->oc);
    else
        set_steps(&p, side_by_side(l));
    return p;
}

static int64_t weight_bytes(const hp_panels *p) {
    const int64_t steps = (int64_t)p->row_steps * (p->depthwise ? p->tap_steps : p->kh);
    return hp_round_up(p->groups * (int64_t)p->padded * steps * p->dot * p->weight, LINES);
}

hp_panels_places hp_panels_place(const hp_panels *p) {
    const int64_t outs = 4 * (int64_t)p->groups * p->padded, at = weight_bytes(p);
    if (!hp_panels_quantised(p)) return (hp_panels_places){.bias = at, .bytes = at + outs};
    return (hp_panels_places){
        .scale = at, .shift = at + outs, .sums = at + 2 * outs, .bytes = at + (2 + p->sums) * outs};
}

/* Scratch of a class of pixels: initial sums and shifts, and copies of pixels that need zero padding. */
static int64_t class_bytes(const hp_panels *p) {
    const int64_t outs = hp_panels_quantised(p) ? 8 * (int64_t)p->groups * p->padded : 0;
    const int64_t pixel = (int64_t)p->kh * p->row_steps * p->dot * p->elem;
    const bool copies = !p->depthwise && !hp_panels_whole_steps(p);
    return outs + (copies ? HP_PANEL_ROWS * hp_round_up(pixel, LINES) : 0);
}

hp_panels_scratch hp_panels_scratch_of(const hp_panels *p) {
    const int64_t at = class_bytes(p), scale = hp_round_up(at, LINES),
                  map = scale + hp_round_up(4 * (int64_t)p->groups * p->padded, LINES);
    if (!p->map) return (hp_panels_scratch){.bytes = at};
    return (hp_panels_scratch){.scale = scale, .map = map, .bytes = map + p->map};
}
