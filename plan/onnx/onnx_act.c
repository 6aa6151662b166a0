/* onnx_act.c - activations and Softmax. */
#include "plan/onnx/onnx_inside.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

static hp_status emit_act(onnx_call *c, const onnx_value *x, hp_act act, double a, double b) {
    int32_t y = x->tensor;
    const hp_layer l = {.op = HP_ACT, .act = act, .act_a = a, .act_b = b, .n_in = 1, .in = {x->tensor}};
    if (isnan(a) || isnan(b)) return onnx_fail(c, "its parameters are not numbers");
    if (act != HP_ACT_NONE) HP_TRY(onnx_emit(c, l, 0, &y));
    onnx_result_like(c, y, x);
    return HP_OK;
}

static hp_status plain_act(onnx_call *c, hp_act act) {
    onnx_value *x;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    return emit_act(c, x, act, 0, 0);
}

hp_status onnx_read_relu(onnx_call *c) {
    return plain_act(c, HP_ACT_RELU);
}

hp_status onnx_read_sigmoid(onnx_call *c) {
    return plain_act(c, HP_ACT_SIGMOID);
}

hp_status onnx_read_hardswish(onnx_call *c) {
    return plain_act(c, HP_ACT_HSWISH);
}

hp_status onnx_read_tanh(onnx_call *c) {
    return plain_act(c, HP_ACT_TANH);
}

hp_status onnx_read_hardsigmoid(onnx_call *c) {
    onnx_value *x;
    double alpha = 0.2, beta = 0.5;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_attr_float(c, "alpha", &alpha));
    HP_TRY(onnx_attr_float(c, "beta", &beta));
    return emit_act(c, x, HP_ACT_HSIGMOID, alpha, beta);
}

hp_status onnx_read_leakyrelu(onnx_call *c) {
    onnx_value *x;
    double alpha = (double)0.01f;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_attr_float(c, "alpha", &alpha));
    return emit_act(c, x, HP_ACT_LEAKY, alpha, 0);
}

hp_status onnx_read_prelu(onnx_call *c) {
    onnx_value *x;
    double slope = 0;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_need_number(c, 1, "slope", &slope));
    return emit_act(c, x, HP_ACT_LEAKY, slope, 0);
}

/* The clamp under its shortest name; bounds without an end are the largest float32s, which files can hold. */
static hp_status clamp(onnx_call *c, const onnx_value *x, double low, double high) {
    const double most = (double)FLT_MAX;
    low = low < -most ? -most : low;
    high = high > most ? most : high;
    if (low <= -most && high >= most) return emit_act(c, x, HP_ACT_NONE, 0, 0);
    if (low == 0 && high >= most) return emit_act(c, x, HP_ACT_RELU, 0, 0);
    if (low == 0 && high == 6) return emit_act(c, x, HP_ACT_RELU6, 0, 0);
    return emit_act(c, x, HP_ACT_CLIP, low, high);
}

hp_status onnx_read_clip(onnx_call *c) {
    onnx_value *x;
    double low = -(double)FLT_MAX, high = (double)FLT_MAX;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_attr_float(c, "min", &low)); /* before opset 11 */
    HP_TRY(onnx_attr_float(c, "max", &high));
    HP_TRY(onnx_need_number(c, 1, "minimum", &low));
    HP_TRY(onnx_need_number(c, 2, "maximum", &high));
    return clamp(c, x, low, high);
}

/* Max and Min of a tensor and a number. */
static hp_status bound(onnx_call *c, bool from_below) {
    onnx_value *x = NULL;
    double low = -INFINITY, high = INFINITY, v = 0;
    for (int i = 0; i < c->n_in; i++) {
        onnx_value *in = onnx_in(c, i);
        if (in && in->kind == ONNX_CONST) {
            HP_TRY(onnx_need_number(c, i, "constant", &v));
            if (from_below && !(v <= low)) low = v;
            if (!from_below && !(v >= high)) high = v;
        } else {
            if (x) return onnx_fail(c, "of two tensors is not supported: only of a tensor and a number");
            HP_TRY(onnx_need_tensor(c, i, &x));
        }
    }
    return clamp(c, x, low, high);
}

hp_status onnx_read_max(onnx_call *c) {
    return bound(c, true);
}

hp_status onnx_read_min(onnx_call *c) {
    return bound(c, false);
}

/* From opset 13 over one dimension, before over that and all behind it together. */
hp_status onnx_read_softmax(onnx_call *c) {
    onnx_value *x;
    int axis, of[HP_AXES];
    int32_t y;
    int64_t given = c->r->opset >= 13 ? -1 : 1;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &given));
    HP_TRY(onnx_axis(c, given, x->n_dim, &axis));
    bool channels = onnx_axes(c->r, x, of) && (of[HP_AXIS_C] < 0 || of[HP_AXIS_C] >= axis);
    for (int a = 0; a < HP_AXES; a++)
        if (a != HP_AXIS_C && (c->r->opset >= 13 ? of[a] == axis : of[a] >= axis)) channels = false;
    if (c->r->opset >= 13 && of[HP_AXIS_C] >= 0 && of[HP_AXIS_C] != axis) channels = false;
    if (!channels) return onnx_fail(c, "over dimension %d is not supported: only over channels", axis);
    HP_TRY(onnx_emit(c, (hp_layer){.op = HP_SOFTMAX, .n_in = 1, .in = {x->tensor}}, 0, &y));
    onnx_result_like(c, y, x);
    return HP_OK;
}
