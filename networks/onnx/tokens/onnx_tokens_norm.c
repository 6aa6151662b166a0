/* onnx_tokens_norm.c - a layer norm as exporters write it before opset 17: d = x - mean(x), d /
 * sqrt(mean(d^2) + eps), times gamma, plus beta. */
#include "networks/onnx/tokens/terms.h"

static bool keeps_dims(const onnx_call *c) {
    int64_t keep = 1;
    return onnx_attr_int(c, "keepdims", 0, 1, &keep) == HP_OK && keep == 1;
}

/* Over the last dimension, which is the channels. */
static bool is_over_channels(const onnx_call *c, const onnx_value *x) {
    int64_t axes[ONNX_MOST_DIMS];
    int n, d;
    return onnx_ints(c, "axes", 1, ONNX_MOST_DIMS, axes, &n) == HP_OK && n == 1 &&
           onnx_axis(c, axes[0], x->n_dim, &d) == HP_OK && d == x->n_dim - 1 && keeps_dims(c);
}

/* Do both terms, or a term and a tensor, belong to the same layout of a tensor? */
static bool of_same(const onnx_call *c, const onnx_value *a, const onnx_value *b) {
    return a->tensor == b->tensor && a->n_dim == b->n_dim && onnx_same_axes(c->r, a, b);
}

hp_status onnx_term_mean(onnx_call *c, onnx_value *const *in, bool *fits) {
    const onnx_value *x = in[0];
    *fits = x->n_dim > 1 && is_over_channels(c, x) && onnx_is_channel_dim(c->r, x, x->n_dim - 1) &&
            onnx_extent(c->r, x, HP_AXIS_C) > 1;
    if (!*fits) return HP_OK;
    onnx_term_result(c, ONNX_MEAN, x, (onnx_term){.x = *x});
    c->out->dim[x->n_dim - 1] = 1;
    return HP_OK;
}

hp_status onnx_term_centred(onnx_call *c, onnx_value *const *in, bool *fits) {
    const onnx_value *x = in[0], *mean = in[1];
    *fits = of_same(c, &mean->term->x, x);
    if (*fits) onnx_term_result(c, ONNX_CENTRED, x, (onnx_term){.x = *x});
    return HP_OK;
}

hp_status onnx_term_squared(onnx_call *c, onnx_value *const *in, bool *fits) {
    double power = 0;
    *fits = onnx_is_number(in[1], &power) && power == 2;
    if (*fits) onnx_term_result(c, ONNX_SQUARED, in[0], *in[0]->term);
    return HP_OK;
}

hp_status onnx_term_product(onnx_call *c, onnx_value *const *in, bool *fits) {
    *fits = of_same(c, &in[0]->term->x, &in[1]->term->x);
    if (*fits) onnx_term_result(c, ONNX_SQUARED, in[0], *in[0]->term);
    return HP_OK;
}

hp_status onnx_term_variance(onnx_call *c, onnx_value *const *in, bool *fits) {
    *fits = is_over_channels(c, in[0]);
    if (!*fits) return HP_OK;
    onnx_term_result(c, ONNX_VARIANCE, in[0], *in[0]->term);
    c->out->dim[in[0]->n_dim - 1] = 1;
    return HP_OK;
}

hp_status onnx_term_plus_eps(onnx_call *c, onnx_value *const *in, bool *fits) {
    onnx_term t = *in[0]->term;
    double eps = 0;
    *fits = onnx_is_number(in[1], &eps) && eps >= 0 && eps < 1e30;
    t.eps += eps;
    if (*fits) onnx_term_result(c, ONNX_VARIANCE, in[0], t);
    return HP_OK;
}

hp_status onnx_term_deviation(onnx_call *c, onnx_value *const *in, bool *fits) {
    (void)fits;
    onnx_term_result(c, ONNX_DEVIATION, in[0], *in[0]->term);
    return HP_OK;
}

hp_status onnx_term_normed(onnx_call *c, onnx_value *const *in, bool *fits) {
    *fits = of_same(c, &in[0]->term->x, &in[1]->term->x);
    if (*fits) onnx_term_result(c, ONNX_NORMED, in[0], *in[1]->term);
    return HP_OK;
}

/* Is it one number per channel, not one for all? */
static bool is_vector(const onnx_call *c, const onnx_term *t, const onnx_const *k) {
    return onnx_per_channel(c->r, &t->x, k) && k->count == onnx_extent(c->r, &t->x, HP_AXIS_C);
}

hp_status onnx_term_times_gamma(onnx_call *c, onnx_value *const *in, bool *fits) {
    onnx_term t = *in[0]->term;
    *fits = !t.gamma && is_vector(c, &t, &in[1]->c);
    t.gamma = &in[1]->c;
    if (*fits) onnx_term_result(c, ONNX_NORMED, in[0], t);
    return HP_OK;
}

hp_status onnx_term_plus_beta(onnx_call *c, onnx_value *const *in, bool *fits) {
    const onnx_term *t = in[0]->term;
    int32_t y;
    *fits = is_vector(c, t, &in[1]->c);
    if (!*fits) return HP_OK;
    HP_TRY(onnx_emit_layernorm(c, t->x.tensor, t->eps, t->gamma, &in[1]->c, &y));
    onnx_result_like(c, y, &t->x);
    return HP_OK;
}
