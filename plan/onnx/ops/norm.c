/* norm.c - BatchNormalization with constant statistics. */
#include "plan/onnx/inside.h"

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
