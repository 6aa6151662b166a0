/* op_norm.c - BatchNormalization with constant statistics, LayerNormalization over channels. */
#include "networks/onnx/onnx_inside.h"

#include <inttypes.h>

hp_status onnx_read_batchnorm(onnx_call *c) {
    static const hp_param_kind kinds[HP_NORM_PARAMS] = {HP_PARAM_BN_GAMMA, HP_PARAM_BN_BETA, HP_PARAM_BN_MEAN,
                                                        HP_PARAM_BN_VAR};
    static const char *const suffix[HP_NORM_PARAMS] = {"weight", "bias", "running_mean", "running_var"};
    onnx_value *x;
    double eps = 1e-5, momentum = 0.9;
    int64_t flag = 0;
    int32_t y;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_attr_float(c, "epsilon", &eps));
    HP_TRY(onnx_attr_float(c, "momentum", &momentum));
    HP_TRY(onnx_attr_int(c, "training_mode", 0, 0, &flag));
    HP_TRY(onnx_attr_int(c, "is_test", 1, 1, &flag)); /* before opset 7 */
    if (c->r->opset < 7 && !flag)
        return onnx_fail(c, "in training mode is not supported: export for inference");
    HP_TRY(onnx_attr_int(c, "spatial", 1, 1, &flag));
    if (x->n_dim < 2 || !onnx_is_channel_dim(c->r, x, 1))
        return onnx_fail(c, "normalises something else than channels");
    if (!(eps >= 0 && eps < 1e30) || !(momentum >= 0 && momentum <= 1))
        return onnx_fail(c, "its epsilon or momentum is not valid");
    const int64_t channels = onnx_extent(c->r, x, HP_AXIS_C);
    const hp_layer l = {.op = HP_BN, .n_in = 1, .in = {x->tensor}, .eps = eps, .momentum = 1 - momentum};
    HP_TRY(onnx_emit(c, l, 0, &y));
    for (int i = 0; i < HP_NORM_PARAMS; i++) {
        const onnx_const *k;
        HP_TRY(onnx_need_const(c, i + 1, suffix[i], &k));
        if (k->count != channels)
            return onnx_fail(c, "its %s has %" PRId64 " numbers for %" PRId64 " channels", suffix[i],
                             k->count, channels);
        HP_TRY(onnx_emit_param(c, kinds[i], k->name, suffix[i], 1, &channels, channels,
                               (hp_onnx_param){onnx_floats(c, k)}));
    }
    onnx_result_like(c, y, x);
    return HP_OK;
}

/* --- LayerNormalization --- */

static hp_status emit_vector(const onnx_call *c, hp_param_kind kind, const char *suffix, const onnx_const *k,
                             int64_t channels) {
    float *ones = HP_NEW(c->r->arena, float, channels);
    for (int64_t i = 0; i < channels; i++) ones[i] = 1;
    return onnx_emit_param(c, kind, k ? k->name : "", suffix, 1, &channels, channels,
                           (hp_onnx_param){k ? onnx_floats(c, k) : ones});
}

hp_status onnx_emit_layernorm(const onnx_call *c, int32_t x, double eps, const onnx_const *gamma,
                              const onnx_const *beta, int32_t *y) {
    const int64_t channels = c->r->graph->tensor[x].c;
    HP_TRY(onnx_emit(c, (hp_layer){.op = HP_LAYERNORM, .n_in = 1, .in = {x}, .eps = eps}, 0, y));
    HP_TRY(emit_vector(c, HP_PARAM_BN_GAMMA, "weight", gamma, channels));
    return beta ? emit_vector(c, HP_PARAM_BN_BETA, "bias", beta, channels) : HP_OK;
}

hp_status onnx_read_layernorm(onnx_call *c) {
    onnx_value *x;
    const onnx_const *gamma, *beta = NULL;
    double eps = (double)1e-5F;
    int64_t given = -1;
    int axis;
    int32_t y;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_need_const(c, 1, "scale", &gamma));
    if (onnx_in(c, 2)) HP_TRY(onnx_need_const(c, 2, "bias", &beta));
    HP_TRY(onnx_attr_float(c, "epsilon", &eps));
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &given));
    HP_TRY(onnx_axis(c, given, x->n_dim, &axis));
    if (axis != x->n_dim - 1 || !onnx_is_channel_dim(c->r, x, axis))
        return onnx_fail(c, "normalises something else than the channels, its last dimension");
    if (!(eps >= 0 && eps < 1e30)) return onnx_fail(c, "its epsilon is not valid");
    const int64_t channels = onnx_extent(c->r, x, HP_AXIS_C);
    if (gamma->count != channels || (beta && beta->count != channels))
        return onnx_fail(
            c, "its scale or bias has another number of numbers than there are channels, %" PRId64, channels);
    HP_TRY(onnx_emit_layernorm(c, x->tensor, eps, gamma, beta, &y));
    onnx_result_like(c, y, x);
    return HP_OK;
}
