/* onnx_tokens_attention.c - softmax(q k' f + mask) v, where queries, keys and values are views with
 * dimensions (..., L, d), (..., d, L) and (..., L, d); the leading ones are samples and heads. */
#include "networks/onnx/tokens/heads.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char not_attention[] =
    "multiplies two tensors that are not queries and keys of attention, (..., tokens, d) and (..., d, "
    "tokens), or its "
    "softmax and values: export attention over all tokens of a sample, its heads cut from the channels";

/* --- scores --- */

hp_status onnx_term_scores(onnx_call *c, onnx_value *const *in, bool *fits) {
    onnx_heads q, k;
    (void)fits;
    if (!onnx_heads_pair(c->r, in[0], in[1], &q, &k)) return onnx_fail(c, "%s", not_attention);
    const onnx_term t = {.x = *in[0], .keys = *in[1], .factor = q.view.factor * k.view.factor};
    onnx_term_result(c, ONNX_SCORES, in[0], t);
    c->out->dim[in[0]->n_dim - 1] = in[1]->dim[in[1]->n_dim - 1];
    return HP_OK;
}

/* Scales a view or scores by a constant. */
static hp_status scaled(onnx_call *c, const onnx_value *x, double factor) {
    if (x->kind == ONNX_SCORES) {
        onnx_term t = *x->term;
        if (t.causal || t.windowed || t.bias)
            return onnx_fail(c, "scales attention's scores after their mask or bias, which is not supported");
        t.factor *= factor;
        onnx_term_result(c, ONNX_SCORES, x, t);
        return HP_OK;
    }
    onnx_view w = *x->view;
    w.factor *= factor;
    onnx_result_view(c, c->out, x, &w, x->n_dim, x->dim);
    return HP_OK;
}

hp_status onnx_term_times(onnx_call *c, onnx_value *const *in, bool *fits) {
    double factor = 0;
    *fits = onnx_is_number(in[1], &factor) && isfinite(factor);
    return *fits ? scaled(c, in[0], factor) : HP_OK;
}

hp_status onnx_term_over(onnx_call *c, onnx_value *const *in, bool *fits) {
    double divisor = 0;
    *fits = onnx_is_number(in[1], &divisor) && isfinite(1 / divisor);
    return *fits ? scaled(c, in[0], 1 / divisor) : HP_OK;
}

/* Changes the dimensions before the last two. */
hp_status onnx_term_reshaped(onnx_call *c, onnx_value *const *in, bool *fits) {
    const onnx_value *x = in[0];
    int64_t dim[ONNX_MOST_DIMS], allow_zero = 0;
    int n;
    (void)fits;
    HP_TRY(onnx_attr_int(c, "allowzero", 0, 1, &allow_zero));
    HP_TRY(onnx_ints(c, "shape", 1, ONNX_MOST_DIMS, dim, &n));
    HP_TRY(onnx_resolve_shape(c, x, allow_zero != 0, dim, n));
    if (n < 2 || dim[n - 1] != x->dim[x->n_dim - 1] || dim[n - 2] != x->dim[x->n_dim - 2])
        return onnx_fail(c, "regroups attention's scores across tokens");
    onnx_value like = {.n_dim = n};
    memcpy(like.dim, dim, sizeof dim);
    onnx_term_result(c, ONNX_SCORES, &like, *x->term);
    return HP_OK;
}

/* --- softmax --- */

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

/* A tensor that holds the channels of the heads, head by head. */
static hp_status tensor_of(const onnx_call *c, const onnx_heads *h, const char *suffix, int32_t *y) {
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

/* Sets the windows, shifted if a mask hides pixels rolled into them; a bias needs windows of at least one. */
static hp_status set_windows(const onnx_call *c, const onnx_term *t, const onnx_heads *q, hp_layer *l) {
    if (q->n_window > 1 || t->bias || t->windowed) {
        l->window.kh = (int32_t)q->window[HP_AXIS_H];
        l->window.kw = (int32_t)q->window[HP_AXIS_W];
    }
    if (t->causal && l->window.kh > 0)
        return onnx_fail(c, "is causal in windows or with a bias, which is not supported");
    if (t->windowed) {
        l->window.pad_h = (int32_t)onnx_heads_shift(q, HP_AXIS_H);
        l->window.pad_w = (int32_t)onnx_heads_shift(q, HP_AXIS_W);
    } else if ((onnx_heads_shift(q, HP_AXIS_H) || onnx_heads_shift(q, HP_AXIS_W)) && q->n_window > 1) {
        return onnx_fail(c, "attends in rolled windows without a mask, which is not supported");
    }
    return HP_OK;
}

/* The output has the queries' dimensions and the heads' channels, head by head. */
static void result_of_heads(onnx_call *c, const onnx_heads *q, int32_t y) {
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
    onnx_heads q, k, v;
    int32_t y;
    (void)fits;
    if (!onnx_heads_pair(c->r, &t->x, &t->keys, &q, &k) || values->n_dim != q.x->n_dim ||
        !onnx_heads_read(c->r, values, values->n_dim - 2, values->n_dim - 1, &v) ||
        !onnx_heads_alike(&q, &v) || k.n != v.n || !onnx_heads_ordered(&k, &v))
        return onnx_fail(c, "%s", not_attention);
    hp_layer l = {.op = HP_ATTENTION,
                  .n_in = 3,
                  .groups = (int32_t)q.n,
                  .attention.kv_heads = (int32_t)k.n,
                  .attention.causal = t->causal};
    HP_TRY(tensor_of(c, &q, "q", &l.in[0]));
    HP_TRY(onnx_scaled(c, l.in[0], t->factor * sqrt((double)q.width), &l.in[0]));
    HP_TRY(tensor_of(c, &k, "k", &l.in[1]));
    HP_TRY(tensor_of(c, &v, "v", &l.in[2]));
    HP_TRY(onnx_scaled(c, l.in[2], v.view.factor, &l.in[2]));
    HP_TRY(check_pairs(c, &l));
    HP_TRY(set_windows(c, t, &q, &l));
    HP_TRY(onnx_emit(c, l, 0, &y));
    if (t->bias) HP_TRY(onnx_emit_bias_table(c, t->bias, &q));
    result_of_heads(c, &q, y);
    return HP_OK;
}
