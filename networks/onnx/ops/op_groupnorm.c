/* op_groupnorm.c - GroupNormalization and InstanceNormalization, also of a view with one channel per group.
 * PyTorch exports a group norm so: Reshape, InstanceNormalization, Reshape, Mul, Add. */
#include "networks/onnx/ops/op_view.h"

#include <inttypes.h>

/* Expands to one number per channel, from one per channel or one per group. */
static hp_status emit_vector(const onnx_call *c, hp_param_kind kind, const char *suffix, const onnx_const *k,
                             int64_t channels) {
    const float *data = onnx_floats(c, k);
    if (k->count == channels)
        return onnx_emit_param(c, kind, k->name, suffix, 1, &channels, channels, (hp_onnx_param){data});
    float *f = data ? HP_NEW(c->r->arena, float, channels) : NULL;
    for (int64_t i = 0; f && i < channels; i++) f[i] = data[i / (channels / k->count)];
    return onnx_emit_param(c, kind, "", suffix, 1, &channels, channels, (hp_onnx_param){f});
}

static hp_status emit_groupnorm(const onnx_call *c, int32_t x, int64_t groups, bool by_group, int32_t *y) {
    const int64_t channels = c->r->graph->tensor[x].c;
    const onnx_const *gamma, *beta;
    double eps = (double)1e-5F;
    HP_TRY(onnx_need_const(c, 1, "scale", &gamma));
    HP_TRY(onnx_need_const(c, 2, "bias", &beta));
    HP_TRY(onnx_attr_float(c, "epsilon", &eps));
    if (!(eps >= 0 && eps < 1e30)) return onnx_fail(c, "its epsilon is not valid");
    const int64_t count = by_group ? groups : channels;
    if (gamma->count != count || beta->count != count)
        return onnx_fail(c, "has %" PRId64 " numbers in its scale and %" PRId64 " in its bias, not %" PRId64,
                         gamma->count, beta->count, count);
    const hp_layer l = {.op = HP_GROUPNORM, .n_in = 1, .in = {x}, .groups = (int32_t)groups, .eps = eps};
    HP_TRY(onnx_emit(c, l, 0, y));
    HP_TRY(emit_vector(c, HP_PARAM_BN_GAMMA, "weight", gamma, channels));
    return emit_vector(c, HP_PARAM_BN_BETA, "bias", beta, channels);
}

/* One scale per channel; before opset 21, one per group. */
hp_status onnx_read_groupnormalization(onnx_call *c) {
    enum { BY_CHANNEL = 21 };
    onnx_value *x;
    int64_t groups = 0;
    int32_t y;
    HP_TRY(onnx_need_map(c, 0, &x));
    HP_TRY(onnx_attr_int(c, "num_groups", 1, ONNX_MOST_SIZE, &groups));
    const int64_t channels = onnx_extent(c->r, x, HP_AXIS_C);
    if (groups < 1 || channels % groups)
        return onnx_fail(c, "%" PRId64 " groups do not divide %" PRId64 " channels", groups, channels);
    HP_TRY(emit_groupnorm(c, x->tensor, groups, c->r->opset < BY_CHANNEL, &y));
    onnx_result(c, y, x->n_dim);
    return HP_OK;
}

/* Is it (N, groups, the remaining channels, rows and columns)? */
static bool has_groups(const onnx_reader *r, const onnx_value *x, int64_t *groups) {
    const onnx_view *w = x->view;
    const int64_t channels = onnx_extent(r, x, HP_AXIS_C);
    const onnx_parts by_group = onnx_view_parts(w, 1);
    int64_t elements = 1;
    *groups = x->n_dim > 2 ? x->dim[1] : 0;
    if (*groups < 1 || channels % *groups || !onnx_view_by_sample(r, x) || w->factor != 1 ||
        onnx_view_rolls(w))
        return false;
    for (int a = 0; a < HP_AXES; a++)
        if (w->first[a]) return false;
    for (int i = 0; i < w->n; i++) elements *= w->part[i].extent;
    const bool one = *groups == 1 ? by_group.n == 0
                                  : by_group.n == 1 && by_group.part[0].axis == HP_AXIS_C &&
                                        by_group.part[0].step == channels / *groups;
    return one && elements == r->batch * hp_tensor_elems(r->graph, x->tensor);
}

hp_status onnx_read_instancenorm(onnx_call *c) {
    onnx_value *x;
    int64_t groups;
    int32_t y;
    HP_TRY(onnx_need_view(c, 0, &x));
    if (x->kind == ONNX_VIEW && has_groups(c->r, x, &groups)) {
        onnx_value made = *x;
        HP_TRY(emit_groupnorm(c, x->tensor, groups, true, &made.tensor));
        onnx_result_view(c, c->out, &made, x->view, x->n_dim, x->dim);
        return HP_OK;
    }
    HP_TRY(onnx_need_tensor(c, 0, &x));
    const bool by_sample = onnx_is_sample_dim(c->r, x, 0);
    if (by_sample && x->n_dim > 2 && x->dim[1] == 1 &&
        onnx_extent(c->r, x, HP_AXIS_C) > 1) { /* all channels are one group */
        HP_TRY(emit_groupnorm(c, x->tensor, 1, true, &y));
        onnx_result_like(c, y, x);
        return HP_OK;
    }
    if (!by_sample || x->n_dim < 3 || !onnx_is_channel_dim(c->r, x, 1))
        return onnx_fail(c, "needs an input of (N, C, H, W) or of (N, groups, what belongs to each)");
    HP_TRY(emit_groupnorm(c, x->tensor, onnx_extent(c->r, x, HP_AXIS_C), false, &y));
    onnx_result_like(c, y, x);
    return HP_OK;
}
