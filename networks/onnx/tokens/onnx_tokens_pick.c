/* onnx_tokens_pick.c - makes tensors of views: a crop for some rows or columns, fewer rows of the producing
 * weights for some channels. Queries, keys and values of one matrix product become three products. */
#include "networks/onnx/tokens/terms.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- channels --- */

static bool is_all(const onnx_call *c, int32_t tensor, const int32_t *channel, int64_t n) {
    bool all = n == c->r->graph->tensor[tensor].c;
    for (int64_t i = 0; i < n && all; i++) all = channel[i] == i;
    return all;
}

static const float *picked(const onnx_call *c, const float *data, int64_t row, const int32_t *channel,
                           int64_t n) {
    if (!data) return NULL;
    float *f = HP_NEW(c->r->arena, float, n *row);
    for (int64_t i = 0; i < n; i++) memcpy(f + i * row, data + channel[i] * row, sizeof *f * (size_t)row);
    return f;
}

/* Appends the layer again, with only the rows `channel` of its parameters. */
static hp_status emit_rows(const onnx_call *c, int32_t layer, int32_t x, const int32_t *channel, int64_t n,
                           const char *suffix, int32_t *y) {
    onnx_reader *r = c->r;
    hp_layer l = r->graph->layer[layer];
    const int n_param = l.n_param;
    const char *name = hp_arena_printf(r->scratch, "%s.%s", l.name, suffix);
    l.in[0] = x;
    l.n_param = 0;
    HP_TRY(onnx_emit(c, l, n, y));
    r->graph->layer[r->graph->n_layer - 1].name = onnx_unique(r->arena, &r->layer_names, name);
    for (int i = 0; i < n_param; i++) {
        const hp_param p = r->graph->param[r->graph->layer[layer].param[i]];
        const int64_t dim[4] = {n, p.dim[1], p.dim[2], p.dim[3]}, row = p.count / p.dim[0];
        const float *data = r->data[r->graph->layer[layer].param[i]].data;
        HP_TRY(onnx_emit_param(c, (hp_param_kind)p.kind, hp_arena_printf(r->scratch, "%s.%s", p.name, suffix),
                               "", p.n_dim, dim, p.fan_in,
                               (hp_onnx_param){.data = picked(c, data, row, channel, n)}));
    }
    return HP_OK;
}

static hp_status gather(const onnx_call *c, const int32_t *channel, int64_t n, int32_t *tensor) {
    const int32_t step = n > 1 ? channel[1] - channel[0] : 1;
    bool even = step >= 0;
    for (int64_t i = 1; i < n; i++) even &= channel[i] - channel[i - 1] == step;
    if (even)
        return onnx_emit_gather(
            c, (hp_layer){.gather.first = channel[0], .gather.step = step, .gather.out_c = (int32_t)n},
            tensor);
    return onnx_fail(
        c,
        "takes channels of layer %s that do not follow each other, and which is no product with a "
        "matrix: not supported",
        c->r->graph->layer[c->r->graph->tensor[*tensor].producer].name);
}

hp_status onnx_pick(const onnx_call *c, int32_t tensor, const int32_t *channel, int64_t n, const char *suffix,
                    int32_t *y) {
    const hp_graph *g = c->r->graph;
    const int32_t layer = g->tensor[tensor].producer;
    const hp_layer l = g->layer[layer];
    int32_t x = l.n_in > 0 ? l.in[0] : tensor;
    *y = tensor;
    if (is_all(c, tensor, channel, n)) return HP_OK;
    const bool matrix = (l.op == HP_CONV && l.groups == 1) || l.op == HP_LINEAR;
    if (!matrix && l.op != HP_SCALE) return gather(c, channel, n, y);
    if (!matrix) HP_TRY(onnx_pick(c, x, channel, n, suffix, &x));
    return emit_rows(c, layer, x, channel, n, suffix, y);
}

hp_status onnx_scaled(const onnx_call *c, int32_t tensor, double factor, int32_t *y) {
    const int64_t channels = c->r->graph->tensor[tensor].c;
    *y = tensor;
    if (fabs(factor - 1) < 1e-6) return HP_OK;
    float *f = HP_NEW(c->r->arena, float, channels);
    for (int64_t i = 0; i < channels; i++) f[i] = (float)factor;
    return onnx_emit_scale(c, tensor, f, NULL, y);
}

/* --- views --- */

/* The indices of an axis that a view has. */
typedef struct places {
    int64_t first, count, step;
} places;

/* Returns false if they consist of several parts. */
static bool places_on(const onnx_view *w, int axis, places *p) {
    int n = 0;
    *p = (places){w->first[axis], 1, 1};
    for (int i = 0; i < w->n; i++) {
        if (w->part[i].axis != axis) continue;
        p->count = w->part[i].extent;
        p->step = w->part[i].step;
        n++;
    }
    return n <= 1;
}

static hp_status thin_out(const onnx_call *c, const places at[HP_AXES], int32_t *tensor) {
    const places *h = &at[HP_AXIS_H], *w = &at[HP_AXIS_W];
    const int64_t first[2] = {h->first, w->first}, count[2] = {h->count, w->count},
                  step[2] = {h->step, w->step};
    return onnx_emit_strided(c, first, count, step, tensor);
}

static hp_status pick(const onnx_call *c, const places *at, int32_t *tensor) {
    int32_t *channel = HP_NEW(c->r->scratch, int32_t, at->count);
    for (int64_t i = 0; i < at->count; i++) channel[i] = (int32_t)(at->first + i * at->step);
    const char *suffix = hp_arena_printf(c->r->scratch, "%" PRId64, at->first);
    return onnx_pick(c, *tensor, channel, at->count, suffix, tensor);
}

/* Describes what no layer can compute in the view. */
static const char *what_is_odd(const onnx_call *c, const onnx_view *w) {
    static const char *const names[HP_AXES] = {
        [HP_AXIS_N] = "samples", [HP_AXIS_H] = "rows", [HP_AXIS_W] = "columns", [HP_AXIS_C] = "channels"};
    places p;
    for (int a = 0; a < HP_AXES; a++)
        if (!places_on(w, a, &p))
            return hp_arena_printf(c->r->scratch, "its input's %s cut into parts", names[a]);
    for (int a = 0; a < HP_AXES; a++)
        if (w->roll[a]) return hp_arena_printf(c->r->scratch, "its input's %s rolled", names[a]);
    for (int a = 0; a < HP_AXES; a++)
        if (a != HP_AXIS_C && places_on(w, a, &p) && p.step != 1)
            return hp_arena_printf(c->r->scratch, "its input's %s in steps of %" PRId64, names[a], p.step);
    return "some of its input";
}

static hp_status settle_view(const onnx_call *reader, onnx_value *v) {
    const onnx_call maker = onnx_as_maker(reader, v), *c = &maker;
    onnx_view w = *v->view;
    places at[HP_AXES];
    int32_t y = v->tensor;
    bool single = true, fits = false;
    for (int a = 0; a < HP_AXES; a++)
        single &= places_on(&w, a, &at[a]) && (a != HP_AXIS_N || at[a].step == 1);
    if (!single) HP_TRY(onnx_settle_shuffled(c, v, &fits));
    if (fits) return HP_OK;
    if (!single || onnx_view_rolls(&w))
        return onnx_fail(c,
                         "makes %s of %s%s, which is supported only as a part of attention and its windows",
                         onnx_dims(c->r, v), what_is_odd(c, &w), onnx_chain_to(c->r, v));
    HP_TRY(pick(c, &at[HP_AXIS_C], &y));
    HP_TRY(thin_out(c, at, &y));
    HP_TRY(onnx_scaled(c, y, w.factor, &y));
    onnx_value x = *v;
    x.tensor = y;
    w.factor = 1;
    for (int i = 0; i < w.n; i++) w.part[i].step = 1;
    onnx_result_view(c, v, &x, &w, v->n_dim, v->dim);
    HP_ASSERT(v->kind == ONNX_TENSOR);
    return HP_OK;
}

/* --- all kinds --- */

static hp_status settle_normed(const onnx_call *c, onnx_value *v) {
    const onnx_term *t = v->term;
    onnx_call own = *c;
    own.node = t->node;
    int32_t y;
    HP_TRY(onnx_emit_layernorm(&own, t->x.tensor, t->eps, t->gamma, NULL, &y));
    own.out = v;
    onnx_result_like(&own, y, &t->x);
    return HP_OK;
}

/* Computes a mean that no layer norm uses. */
static hp_status settle_mean(const onnx_call *c, onnx_value *v) {
    const onnx_term *t = v->term;
    onnx_value like = t->x;
    onnx_call own = *c;
    int32_t y;
    own.node = t->node;
    own.out = v;
    HP_TRY(onnx_emit(&own, (hp_layer){.op = HP_REDUCE, .n_in = 1, .in = {t->x.tensor}}, 0, &y));
    like.dim[like.n_dim - 1] = 1;
    onnx_result_like(&own, y, &like);
    return HP_OK;
}

hp_status onnx_settle(const onnx_call *c, onnx_value *v) {
    if (v->kind == ONNX_TENSOR) return HP_OK;
    if (v->kind == ONNX_MEAN) return settle_mean(c, v);
    if (v->kind == ONNX_VIEW) return settle_view(c, v);
    if (v->kind == ONNX_NORMED) return settle_normed(c, v);
    const onnx_call maker = onnx_as_maker(c, v);
    return onnx_fail(&maker,
                     "its result, %s%s, is supported only as a part of layer normalisation or attention as "
                     "exporters write them, which %s is not",
                     onnx_kind_name(v->kind), onnx_chain_to(c->r, v),
                     c->node && c->node != maker.node ? onnx_title(c->r->scratch, c->node)
                                                      : "the model's output");
}
