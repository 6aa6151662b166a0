/* attention.c - softmax(q k' f + mask) v of queries, keys and values that are views: of dimensions (..., L, d),
 * (..., d, L) and (..., L, d), the others samples and heads. */
#include "plan/onnx/tokens/terms.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- heads --- */

/* Queries, keys or values: dimension `rows` is of tokens, `cols` of a head's channels. */
typedef struct heads {
    const onnx_value *x;
    onnx_view view;
    int rows, cols;
    int64_t n, step, width, stride; /* heads, between them; channels of one, between them */
} heads;

static bool only_of(onnx_parts p, int axis, int or_axis) {
    for (int i = 0; i < p.n; i++)
        if (p.part[i].axis != axis && p.part[i].axis != or_axis) return false;
    return true;
}

/* All rows and columns of the map, once. */
static bool all_tokens(const onnx_reader *r, const heads *h) {
    const onnx_parts p = onnx_view_parts(&h->view, h->rows);
    int64_t n = 1;
    for (int i = 0; i < p.n; i++) {
        if (p.part[i].step != 1 || p.part[i].extent != onnx_extent(r, h->x, p.part[i].axis)) return false;
        n *= p.part[i].extent;
    }
    return n == onnx_extent(r, h->x, HP_AXIS_H) * onnx_extent(r, h->x, HP_AXIS_W);
}

static bool read_heads(const onnx_reader *r, const onnx_value *x, int rows, int cols, heads *h) {
    *h = (heads){.x = x, .rows = rows, .cols = cols, .n = 1, .width = x->dim[cols], .stride = 1};
    if (x->n_dim < 2 || !onnx_view_of(r, x, &h->view)) return false;
    const onnx_parts of_head = onnx_view_parts(&h->view, cols);
    if (!only_of(of_head, HP_AXIS_C, HP_AXIS_C) || of_head.n > 1 || !all_tokens(r, h) ||
        !only_of(onnx_view_parts(&h->view, rows), HP_AXIS_H, HP_AXIS_W))
        return false;
    if (of_head.n == 1) h->stride = of_head.part[0].step;
    int n = 0;
    for (int d = 0; d < x->n_dim - 2; d++) {
        const onnx_parts p = onnx_view_parts(&h->view, d);
        if (!only_of(p, HP_AXIS_C, HP_AXIS_N)) return false;
        for (int i = 0; i < p.n; i++) {
            if (p.part[i].axis != HP_AXIS_C) continue;
            if (n++) return false;
            h->n = p.part[i].extent;
            h->step = p.part[i].step;
        }
    }
    return true;
}

/* Do the dimensions before the last two have the same samples and heads in the same order? */
static bool alike(const heads *a, const heads *b) {
    bool same = a->x->n_dim == b->x->n_dim && a->n == b->n && a->width == b->width;
    for (int d = 0; d < a->x->n_dim - 2 && same; d++) {
        const onnx_parts p = onnx_view_parts(&a->view, d), q = onnx_view_parts(&b->view, d);
        same = a->x->dim[d] == b->x->dim[d] && p.n == q.n;
        for (int i = 0; i < p.n && same; i++)
            same = p.part[i].axis == q.part[i].axis && p.part[i].extent == q.part[i].extent;
    }
    return same;
}

/* Are the tokens of both in the same order? */
static bool same_order(const heads *a, const heads *b) {
    const onnx_parts p = onnx_view_parts(&a->view, a->rows), q = onnx_view_parts(&b->view, b->rows);
    bool same = p.n == q.n;
    for (int i = 0; i < p.n && same; i++)
        same = p.part[i].axis == q.part[i].axis && p.part[i].extent == q.part[i].extent;
    return same;
}

static bool row_by_row(const heads *h) {
    const onnx_parts p = onnx_view_parts(&h->view, h->rows);
    return p.n < 2 || p.part[0].axis == HP_AXIS_H;
}

static const char not_attention[] =
    "multiplies two tensors that are not queries and keys of attention, (..., tokens, d) and (..., d, "
    "tokens), or its "
    "softmax and values: export attention over all tokens of a sample, its heads cut from the channels";

/* --- scores --- */

static bool read_pair(const onnx_reader *r, const onnx_value *x, const onnx_value *keys, heads *q, heads *k) {
    const int n = x->n_dim;
    return n == keys->n_dim && n >= 2 && read_heads(r, x, n - 2, n - 1, q) &&
           read_heads(r, keys, n - 1, n - 2, k) && alike(q, k);
}

hp_status onnx_term_scores(onnx_call *c, onnx_value *const *in, bool *fits) {
    heads q, k;
    (void)fits;
    if (!read_pair(c->r, in[0], in[1], &q, &k)) return onnx_fail(c, "%s", not_attention);
    const onnx_term t = {.x = *in[0], .keys = *in[1], .factor = q.view.factor * k.view.factor};
    onnx_term_result(c, ONNX_SCORES, in[0], t);
    c->out->dim[in[0]->n_dim - 1] = in[1]->dim[in[1]->n_dim - 1];
    return HP_OK;
}

/* Of views and scores. */
static void scaled(onnx_call *c, const onnx_value *x, double factor) {
    if (x->kind == ONNX_SCORES) {
        onnx_term t = *x->term;
        t.factor *= factor;
        onnx_term_result(c, ONNX_SCORES, x, t);
        return;
    }
    onnx_view w = *x->view;
    w.factor *= factor;
    onnx_result_view(c, c->out, x, &w, x->n_dim, x->dim);
}

hp_status onnx_term_times(onnx_call *c, onnx_value *const *in, bool *fits) {
    double factor = 0;
    *fits = onnx_is_number(in[1], &factor) && isfinite(factor);
    if (*fits) scaled(c, in[0], factor);
    return HP_OK;
}

hp_status onnx_term_over(onnx_call *c, onnx_value *const *in, bool *fits) {
    double divisor = 0;
    *fits = onnx_is_number(in[1], &divisor) && isfinite(1 / divisor);
    if (*fits) scaled(c, in[0], 1 / divisor);
    return HP_OK;
}

/* --- masks --- */

/* Does the constant hide this score? It adds a number below it, or chooses. */
typedef bool hides(const onnx_const *k, int64_t i);

static bool is_low(double v) {
    return v <= -1e4; /* what exporters write for minus infinity */
}

static bool adds_low(const onnx_const *k, int64_t i) {
    return is_low(onnx_real(k, i));
}

static bool is_true(const onnx_const *k, int64_t i) {
    return onnx_integer(k, i) != 0;
}

static bool is_false(const onnx_const *k, int64_t i) {
    return onnx_integer(k, i) == 0;
}

/* (L, L) or (1, .., L, L) that hides nothing, or all later tokens. */
static hp_status add_mask(onnx_call *c, const onnx_value *scores, const onnx_const *k, hides *hidden) {
    const int64_t rows = scores->dim[scores->n_dim - 2], cols = scores->dim[scores->n_dim - 1];
    onnx_term t = *scores->term;
    bool none = true, later = true, fits = k->n_dim >= 2 && k->n_dim <= scores->n_dim;
    heads q, keys;
    for (int d = 0; d < k->n_dim && fits; d++) fits = d >= k->n_dim - 2 || k->dim[d] == 1;
    if (!fits || k->dim[k->n_dim - 2] != rows || k->dim[k->n_dim - 1] != cols || !k->data)
        return onnx_fail(
            c, "its mask or bias is not one of (tokens, tokens) for all heads that hides later tokens");
    HP_TRY(onnx_spend(c, k->count));
    for (int64_t i = 0; i < k->count; i++) {
        const bool hide = hidden(k, i);
        none &= !hide;
        later &= hide == (i % cols > i / cols);
    }
    if (!none && (!later || rows != cols || !read_pair(c->r, &t.x, &t.keys, &q, &keys) ||
                  !same_order(&q, &keys) || !row_by_row(&q)))
        return onnx_fail(c, "its mask hides other tokens than those that come later, which is not supported");
    t.causal |= !none;
    onnx_term_result(c, ONNX_SCORES, scores, t);
    return HP_OK;
}

hp_status onnx_term_plus_mask(onnx_call *c, onnx_value *const *in, bool *fits) {
    const onnx_const *k = &in[1]->c;
    (void)fits;
    for (int64_t i = 0; k->data && i < k->count; i++)
        if (onnx_real(k, i) != 0 && !adds_low(k, i))
            return onnx_fail(
                c, "adds a bias to attention's scores, which is not supported: only a mask of 0 and "
                   "minus infinity");
    return add_mask(c, in[0], k, adds_low);
}

static hp_status where_mask(onnx_call *c, const onnx_value *scores, const onnx_value *choice,
                            const onnx_value *other, hides *hidden) {
    double low = 0;
    if (!onnx_is_number(other, &low) || !is_low(low))
        return onnx_fail(c, "replaces attention's scores by another number than minus infinity");
    return add_mask(c, scores, &choice->c, hidden);
}

hp_status onnx_term_where_hidden(onnx_call *c, onnx_value *const *in, bool *fits) {
    (void)fits;
    return where_mask(c, in[2], in[0], in[1], is_true);
}

hp_status onnx_term_where_seen(onnx_call *c, onnx_value *const *in, bool *fits) {
    (void)fits;
    return where_mask(c, in[1], in[0], in[2], is_false);
}

hp_status onnx_term_softmax(onnx_call *c, onnx_value *const *in, bool *fits) {
    int64_t given = c->r->opset >= 13 ? -1 : 1;
    int axis;
    (void)fits;
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &given));
    HP_TRY(onnx_axis(c, given, in[0]->n_dim, &axis));
    if (axis != in[0]->n_dim - 1)
        return onnx_fail(c, "of attention's scores is over dimension %d, not the last", axis);
    onnx_term_result(c, ONNX_SHARES, in[0], *in[0]->term);
    return HP_OK;
}

/* --- the layer --- */

/* A tensor whose channels are the heads', one after the other. */
static hp_status tensor_of(const onnx_call *c, const heads *h, const char *suffix, int32_t *y) {
    const int64_t n = h->n * h->width;
    int32_t *channel = HP_NEW(c->r->scratch, int32_t, n);
    for (int64_t i = 0; i < n; i++)
        channel[i] = (int32_t)(h->view.first[HP_AXIS_C] + i / h->width * h->step + i % h->width * h->stride);
    return onnx_pick(c, h->x->tensor, channel, n, suffix, y);
}

static hp_status check_pairs(const onnx_call *c, const hp_layer *l) {
    const hp_graph *g = c->r->graph;
    const hp_tensor *q = &g->tensor[l->in[0]];
    if ((double)hp_tensor_elems(g, l->in[1]) * (double)q->h * (double)q->w <= 0x1p58) return HP_OK;
    return onnx_fail(c, "has more multiply-adds than can be counted: give a smaller --image");
}

/* The output has the queries' dimensions; its channels are the heads', one after the other. */
static void result_of_heads(onnx_call *c, const heads *q, int32_t y) {
    onnx_view w = q->view;
    onnx_value x = *q->x;
    const onnx_part *of_head = onnx_view_parts(&q->view, q->cols).part;
    w.factor = 1;
    memset(w.first, 0, sizeof w.first);
    for (int i = 0; i < w.n; i++)
        if (w.part[i].axis == HP_AXIS_C) w.part[i].step = &q->view.part[i] == of_head ? 1 : q->width;
    x.tensor = y;
    x.type = ONNX_FLOAT;
    onnx_result_view(c, c->out, &x, &w, x.n_dim, x.dim);
}

hp_status onnx_term_attention(onnx_call *c, onnx_value *const *in, bool *fits) {
    const onnx_term *t = in[0]->term;
    const onnx_value *values = in[1];
    heads q, k, v;
    int32_t y;
    (void)fits;
    if (!read_pair(c->r, &t->x, &t->keys, &q, &k) || values->n_dim != q.x->n_dim ||
        !read_heads(c->r, values, values->n_dim - 2, values->n_dim - 1, &v) || !alike(&q, &v) ||
        !same_order(&k, &v))
        return onnx_fail(c, "%s", not_attention);
    hp_layer l = {
        .op = HP_ATTENTION, .n_in = 3, .groups = (int32_t)q.n, .kv_heads = (int32_t)q.n, .causal = t->causal};
    HP_TRY(tensor_of(c, &q, "q", &l.in[0]));
    HP_TRY(onnx_scaled(c, l.in[0], t->factor * sqrt((double)q.width), &l.in[0]));
    HP_TRY(tensor_of(c, &k, "k", &l.in[1]));
    HP_TRY(tensor_of(c, &v, "v", &l.in[2]));
    HP_TRY(onnx_scaled(c, l.in[2], v.view.factor, &l.in[2]));
    HP_TRY(check_pairs(c, &l));
    HP_TRY(onnx_emit(c, l, 0, &y));
    result_of_heads(c, &q, y);
    return HP_OK;
}
