/* op_conv.c - Conv, ConvTranspose and ConvInteger. One spatial dimension is a map of one column. */
#include "networks/onnx/ops/op_conv.h"

#include "networks/onnx/onnx_weights.h"
#include "networks/onnx/ops/op_window.h"

#include <inttypes.h>

/* Checks (O, I, k[, k]): rank of the map, no empty dimension. */
static hp_status check_weights(const onnx_call *c, const onnx_value *x, const onnx_const *w) {
    if (w->n_dim != x->n_dim)
        return onnx_fail(c, "has weights of %d dimensions for an input of %d", w->n_dim, x->n_dim);
    for (int i = 0; i < w->n_dim; i++)
        if (w->dim[i] < 1 || w->dim[i] > ONNX_MOST_SIZE)
            return onnx_fail(c, "its weights are empty or too large");
    return HP_OK;
}

static hp_status read_groups(const onnx_call *c, int64_t in_c, int64_t out_c, int64_t *groups) {
    *groups = 1;
    HP_TRY(onnx_attr_int(c, "group", 1, ONNX_MOST_SIZE, groups));
    if (in_c % *groups == 0 && out_c % *groups == 0) return HP_OK;
    return onnx_fail(c, "%" PRId64 " groups do not divide %" PRId64 " inputs and %" PRId64 " outputs",
                     *groups, in_c, out_c);
}

static hp_status emit_weights(onnx_call *c, const onnx_const *w, const onnx_window *win, int64_t fan_in,
                              hp_onnx_param data) {
    const int64_t dim[4] = {w->dim[0], w->dim[1], win->k[0], win->k[1]};
    return onnx_emit_param(c, HP_PARAM_CONV_W, w->name, "weight", 4, dim, fan_in, data);
}

hp_status onnx_conv_with(onnx_call *c, const onnx_value *x, int32_t tensor, const onnx_const *w,
                         const onnx_const *bias) {
    onnx_window win;
    int64_t groups;
    const int64_t in_c = onnx_extent(c->r, x, HP_AXIS_C);
    HP_TRY(check_weights(c, x, w));
    HP_TRY(read_groups(c, in_c, w->dim[0], &groups));
    if (w->dim[1] * groups != in_c)
        return onnx_fail(c, "has weights for %" PRId64 " channels and an input of %" PRId64,
                         w->dim[1] * groups, in_c);
    HP_TRY(onnx_window_read(c, x, w->dim + 2, &win));
    HP_TRY(onnx_window_pads(c, false, &win));
    hp_layer l = onnx_window_layer(HP_CONV, tensor, &win);
    l.groups = (int32_t)groups;
    int32_t y;
    HP_TRY(onnx_emit(c, l, w->dim[0], &y));
    HP_TRY(emit_weights(c, w, &win, w->count / w->dim[0], onnx_weights_conv(c, w)));
    HP_TRY(onnx_emit_bias(c, bias, w->dim[0]));
    onnx_result(c, y, x->n_dim);
    return HP_OK;
}

hp_status onnx_read_conv(onnx_call *c) {
    onnx_value *x;
    const onnx_const *w, *bias = NULL;
    HP_TRY(onnx_need_map(c, 0, &x));
    HP_TRY(onnx_need_const(c, 1, "weights", &w));
    if (onnx_in(c, 2)) HP_TRY(onnx_need_const(c, 2, "bias", &bias));
    return onnx_conv_with(c, x, x->tensor, w, bias);
}

hp_status onnx_read_convt(onnx_call *c) {
    onnx_value *x;
    onnx_window win;
    int64_t groups = 1;
    const onnx_const *w, *bias = NULL;
    HP_TRY(onnx_need_map(c, 0, &x));
    HP_TRY(onnx_need_const(c, 1, "weights", &w));
    if (onnx_in(c, 2)) HP_TRY(onnx_need_const(c, 2, "bias", &bias));
    const int64_t in_c = onnx_extent(c->r, x, HP_AXIS_C);
    HP_TRY(check_weights(c, x, w));
    HP_TRY(onnx_attr_int(c, "group", 1, ONNX_MOST_SIZE, &groups));
    if (w->dim[0] != in_c || in_c % groups)
        return onnx_fail(
            c, "has weights for %" PRId64 " channels in %" PRId64 " groups and an input of %" PRId64,
            w->dim[0], groups, in_c);
    HP_TRY(onnx_window_read(c, x, w->dim + 2, &win));
    HP_TRY(onnx_window_transposed(c, &win));
    hp_layer l = onnx_window_layer(HP_CONVT, x->tensor, &win);
    l.groups = (int32_t)groups;
    int32_t y;
    HP_TRY(onnx_emit(c, l, w->dim[1] * groups, &y));
    HP_TRY(emit_weights(c, w, &win, w->count / w->dim[0], onnx_weights_convt(c, w)));
    HP_TRY(onnx_emit_bias(c, bias, w->dim[1] * groups));
    onnx_result(c, y, x->n_dim);
    return HP_OK;
}
