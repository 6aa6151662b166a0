/* op_act.c - activations and Softmax. */
#include "networks/onnx/onnx_inside.h"
#include "networks/graph/acts.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static hp_status emit_act(onnx_call *c, const onnx_value *x, hp_act act, double a, double b) {
    int32_t y = x->tensor;
    const hp_layer l = {
        .op = HP_ACT, .act = act, .act_arg.a = a, .act_arg.b = b, .n_in = 1, .in = {x->tensor}};
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

hp_status onnx_read_erf(onnx_call *c) {
    return plain_act(c, HP_ACT_ERF);
}

hp_status onnx_read_softplus(onnx_call *c) {
    return plain_act(c, HP_ACT_SOFTPLUS);
}

hp_status onnx_read_softsign(onnx_call *c) {
    return plain_act(c, HP_ACT_SOFTSIGN);
}

hp_status onnx_read_mish(onnx_call *c) {
    return plain_act(c, HP_ACT_MISH);
}

hp_status onnx_read_gelu(onnx_call *c) {
    const char *form = "none";
    HP_TRY(onnx_attr_text(c, "approximate", &form));
    if (strcmp(form, "none") == 0) return plain_act(c, HP_ACT_GELU);
    if (strcmp(form, "tanh") == 0) return plain_act(c, HP_ACT_GELU_TANH);
    return onnx_fail(c, "its approximation '%.40s' is neither none nor tanh", form);
}

/* Squares and cubes become products. */
hp_status onnx_read_pow(onnx_call *c) {
    onnx_value *x;
    double power = 0;
    int32_t y;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_need_number(c, 1, "exponent", &power));
    if (power != 2 && power != 3)
        return onnx_fail(c, "its exponent is %g: only 2 and 3 are supported", power);
    hp_layer l = {.op = HP_MUL, .n_in = 2, .in = {x->tensor, x->tensor}};
    HP_TRY(onnx_emit(c, l, 0, &y));
    l.in[1] = y;
    if (power == 3) HP_TRY(onnx_emit(c, l, 0, &y));
    onnx_result_like(c, y, x);
    return HP_OK;
}

/* An activation with one or two attributes; NULL: it has no second one. */
static hp_status act_with(onnx_call *c, hp_act act, const char *first, double a, const char *second,
                          double b) {
    onnx_value *x;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_attr_float(c, first, &a));
    if (second) HP_TRY(onnx_attr_float(c, second, &b));
    return emit_act(c, x, act, a, b);
}

hp_status onnx_read_hardsigmoid(onnx_call *c) {
    return act_with(c, HP_ACT_HSIGMOID, "alpha", 0.2, "beta", 0.5);
}

hp_status onnx_read_leakyrelu(onnx_call *c) {
    return act_with(c, HP_ACT_LEAKY, "alpha", (double)0.01f, NULL, 0);
}

hp_status onnx_read_elu(onnx_call *c) {
    return act_with(c, HP_ACT_ELU, "alpha", 1, NULL, 0);
}

hp_status onnx_read_thresholdedrelu(onnx_call *c) {
    return act_with(c, HP_ACT_THRESHOLDED, "alpha", 1, NULL, 0);
}

/* The defaults are ONNX's, as float32. */
hp_status onnx_read_selu(onnx_call *c) {
    return act_with(c, HP_ACT_SELU, "alpha", 1.67326319217681884765625, "gamma", 1.05070102214813232421875);
}

hp_status onnx_read_celu(onnx_call *c) {
    double alpha = 1;
    HP_TRY(onnx_attr_float(c, "alpha", &alpha));
    if (alpha == 0) return onnx_fail(c, "alpha is 0, which it divides by");
    return act_with(c, HP_ACT_CELU, "alpha", alpha, NULL, 0);
}

/* --- one number per channel --- */

/* sign * k, or sign everywhere without k; NULL if k is not stored. */
static float *vector_of(const onnx_call *c, const onnx_value *x, const onnx_const *k, float sign) {
    const int64_t channels = onnx_extent(c->r, x, HP_AXIS_C);
    if (k && !k->data) return NULL;
    float *f = HP_NEW(c->r->arena, float, channels);
    for (int64_t i = 0; i < channels; i++)
        f[i] = k ? sign * (float)onnx_real(k, k->count == 1 ? 0 : i) : sign;
    return f;
}

static hp_status emit_relu(const onnx_call *c, int32_t x, int32_t *y) {
    return onnx_emit(c, (hp_layer){.op = HP_ACT, .act = HP_ACT_RELU, .n_in = 1, .in = {x}}, 0, y);
}

static hp_status check_vector(const onnx_call *c, const onnx_value *x, const onnx_const *k) {
    if (onnx_per_channel(c->r, x, k)) return HP_OK;
    return onnx_fail(c, "its constant varies along more than channels");
}

/* One slope for all channels, or one each. */
hp_status onnx_read_prelu(onnx_call *c) {
    onnx_value *x;
    const onnx_const *slope;
    int32_t y;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_need_const(c, 1, "slope", &slope));
    HP_TRY(check_vector(c, x, slope));
    const hp_layer l = {.op = HP_PRELU, .n_in = 1, .in = {x->tensor}, .groups = slope->count == 1};
    HP_TRY(onnx_emit(c, l, 0, &y));
    HP_TRY(onnx_emit_param(c, HP_PARAM_FACTOR, slope->name, "slope", 1, &slope->count, 1,
                           (hp_onnx_param){onnx_floats(c, slope)}));
    onnx_result_like(c, y, x);
    return HP_OK;
}

/* max(x, k) = k + relu(x - k), min(x, k) = k - relu(k - x) */
static hp_status bound_by_channel(onnx_call *c, onnx_value *x, const onnx_const *k, bool from_below) {
    const float sign = from_below ? 1 : -1;
    int32_t y;
    HP_TRY(check_vector(c, x, k));
    HP_TRY(onnx_emit_scale(c, x->tensor, vector_of(c, x, NULL, sign), vector_of(c, x, k, -sign), &y));
    HP_TRY(emit_relu(c, y, &y));
    HP_TRY(onnx_emit_scale(c, y, vector_of(c, x, NULL, sign), vector_of(c, x, k, 1), &y));
    x->tensor = y;
    return HP_OK;
}

/* The clamp in its simplest form; open ends become the largest float32 values, which files can represent. */
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

/* Max and Min of a tensor and constants. */
static hp_status bound(onnx_call *c, bool from_below) {
    onnx_value *x = NULL, so_far;
    double low = -INFINITY, high = INFINITY;
    for (int i = 0; i < c->n_in; i++) {
        if (onnx_in(c, i) && onnx_in(c, i)->kind == ONNX_CONST) continue;
        if (x) return onnx_fail(c, "of two tensors is not supported: only of a tensor and constants");
        HP_TRY(onnx_need_tensor(c, i, &x));
    }
    if (!x) return onnx_fail(c, "of constants alone is not supported here");
    so_far = *x;
    for (int i = 0; i < c->n_in; i++) {
        const onnx_value *in = onnx_in(c, i);
        if (in->kind != ONNX_CONST) continue;
        if (in->c.count != 1) HP_TRY(bound_by_channel(c, &so_far, &in->c, from_below));
        const double v = onnx_real(&in->c, 0);
        if (in->c.count == 1 && from_below && !(v <= low)) low = v;
        if (in->c.count == 1 && !from_below && !(v >= high)) high = v;
    }
    return clamp(c, &so_far, low, high);
}

hp_status onnx_read_max(onnx_call *c) {
    return bound(c, true);
}

hp_status onnx_read_min(onnx_call *c) {
    return bound(c, false);
}

/* From opset 13, over one dimension; before, over `axis` and all later dimensions together. */
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

/* Opset 24: x sigmoid(alpha x). */
hp_status onnx_read_swish(onnx_call *c) {
    double alpha = 1;
    HP_TRY(onnx_attr_float(c, "alpha", &alpha));
    if (alpha != 1) return onnx_fail(c, "attribute alpha = %g is not supported: only 1", alpha);
    return plain_act(c, HP_ACT_SILU);
}
