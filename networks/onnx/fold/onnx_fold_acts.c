/* onnx_fold_acts.c - merges activations that exporters write as several nodes into one layer. */
#include "networks/onnx/fold/simplify.h"

#include <math.h>

/* --- what layers are --- */

static bool is_factor(const onnx_passes *p, const hp_layer *l, double value) {
    return l && l->op == HP_SCALE && !hp_layer_has_act(l) && l->n_param == 1 && onnx_all_are(p, l, 0, value);
}

static bool is_shift(const onnx_passes *p, const hp_layer *l, double value) {
    return l && l->n_param == 2 && onnx_all_are(p, l, 0, 1) && onnx_all_are(p, l, 1, value);
}

/* --- hard swish: x clamp(x + 3, 0, 6) / 6, the division anywhere, or x hardsigmoid(x) --- */

/* Is `tensor` clamp(x + 3, 0, 6), with no other reader? */
static bool is_clamped(const onnx_passes *p, int32_t tensor, int32_t x) {
    const hp_layer *clip = onnx_sole_maker(p, tensor, HP_ACT);
    if (!clip || !(clip->act == HP_ACT_RELU6 ||
                   (clip->act == HP_ACT_CLIP && clip->act_arg.a == 0 && clip->act_arg.b == 6)))
        return false;
    const hp_layer *shift = onnx_sole_maker(p, clip->in[0], HP_SCALE);
    return is_shift(p, shift, 3) && shift->in[0] == x;
}

static bool is_gate(const onnx_passes *p, int32_t tensor, int32_t x) {
    const hp_layer *gate = onnx_sole_maker(p, tensor, HP_ACT), *sixth = onnx_sole_maker(p, tensor, HP_SCALE);
    if (gate && gate->act == HP_ACT_HSIGMOID)
        return gate->in[0] == x && fabs(gate->act_arg.a - 1.0 / 6) < 1e-6 && gate->act_arg.b == 0.5;
    return is_factor(p, sixth, 1.0 / 6) && is_clamped(p, sixth->in[0], x);
}

static bool hard_swish(onnx_passes *p, hp_layer *l) {
    const bool sixth = is_factor(p, l, 1.0 / 6);
    const hp_layer *product = l->op == HP_MUL ? l : sixth ? onnx_sole_maker(p, l->in[0], HP_MUL) : NULL;
    if (!product || hp_layer_has_act(product)) return false;
    for (int k = 0; k < 2; k++) {
        const int32_t x = product->in[k], gate = product->in[1 - k];
        if (sixth ? !is_clamped(p, gate, x) : !is_gate(p, gate, x)) continue;
        onnx_replace_layer(p, l, HP_ACT, HP_ACT_HSWISH, x);
        return true;
    }
    return false;
}

/* --- x (1 + erf(x / sqrt(2))) / 2, its form with tanh, x sigmoid(x), x tanh(softplus(x)); factors anywhere
 * --- */

/* factor * tensor + bias, the same for all channels. */
typedef struct affine {
    int32_t tensor;
    double factor, bias;
} affine;

static bool is_uniform(const onnx_passes *p, const hp_layer *l, int i, double *value) {
    const float *data = i < l->n_param ? p->r->data[l->param[i]].data : NULL;
    if (i >= l->n_param) return true;
    if (!data) return false;
    *value = (double)data[0];
    return onnx_all_are(p, l, i, *value);
}

static affine affine_of(const onnx_passes *p, int32_t tensor) {
    affine a = {tensor, 1, 0};
    for (const hp_layer *l; (l = onnx_sole_maker(p, a.tensor, HP_SCALE)) && !hp_layer_has_act(l);) {
        double factor = 1, bias = 0;
        if (!is_uniform(p, l, 0, &factor) || !is_uniform(p, l, 1, &bias)) break;
        a = (affine){l->in[0], a.factor * factor, a.factor * bias + a.bias};
    }
    return a;
}

static bool close_to(double v, double want) {
    return fabs(v - want) < 1e-5;
}

/* The layer that multiplies x with a tensor, returned as `other`; NULL: none. */
static const hp_layer *times(const onnx_passes *p, int32_t tensor, int32_t x, int32_t *other) {
    const hp_layer *l = onnx_sole_maker(p, tensor, HP_MUL);
    if (!l || hp_layer_has_act(l) || (l->in[0] != x && l->in[1] != x)) return NULL;
    *other = l->in[l->in[0] == x];
    return l;
}

static bool is_cube(const onnx_passes *p, int32_t tensor, int32_t x) {
    int32_t square, again;
    return times(p, tensor, x, &square) && times(p, square, x, &again) && again == x;
}

/* sqrt(2 / pi) (x + 0.044715 x^3) */
static bool is_gelu_argument(const onnx_passes *p, affine a, int32_t x) {
    const hp_layer *sum = onnx_sole_maker(p, a.tensor, HP_ADD);
    if (!sum || hp_layer_has_act(sum) || !close_to(a.factor, 0.7978845608) || a.bias != 0) return false;
    for (int k = 0; k < 2; k++) {
        const affine cube = affine_of(p, sum->in[1 - k]);
        if (sum->in[k] == x && close_to(cube.factor, 0.044715) && cube.bias == 0 &&
            is_cube(p, cube.tensor, x))
            return true;
    }
    return false;
}

static bool is_softplus(const onnx_passes *p, int32_t tensor, int32_t x) {
    const hp_layer *l = onnx_sole_maker(p, tensor, HP_ACT);
    return l && l->act == HP_ACT_SOFTPLUS && l->in[0] == x;
}

/* The activation that equals factor times x times the gate; HP_ACT_NONE: none. */
static hp_act gated(const onnx_passes *p, affine gate, double factor, int32_t x) {
    const hp_layer *l = onnx_sole_maker(p, gate.tensor, HP_ACT);
    const double slope = gate.factor * factor, shift = gate.bias * factor;
    const bool half = close_to(slope, 0.5) && close_to(shift, 0.5),
               plain = close_to(slope, 1) && close_to(shift, 0);
    if (!l) return HP_ACT_NONE;
    const affine a = affine_of(p, l->in[0]);
    if (l->act == HP_ACT_SIGMOID && l->in[0] == x && plain) return HP_ACT_SILU;
    if (l->act == HP_ACT_TANH && is_softplus(p, l->in[0], x) && plain) return HP_ACT_MISH;
    if (l->act == HP_ACT_ERF && half && a.tensor == x && close_to(a.factor, 0.7071067812) && a.bias == 0)
        return HP_ACT_GELU;
    return l->act == HP_ACT_TANH && half && is_gelu_argument(p, a, x) ? HP_ACT_GELU_TANH : HP_ACT_NONE;
}

/* Matches x or a multiple of it, times a gate; the product may be multiplied once more. */
static bool gated_product(onnx_passes *p, hp_layer *l) {
    double whole = 1;
    const hp_layer *product = l;
    if (l->op == HP_SCALE && !hp_layer_has_act(l) && l->n_param == 1 && is_uniform(p, l, 0, &whole))
        product = onnx_sole_maker(p, l->in[0], HP_MUL);
    if (!product || product->op != HP_MUL || hp_layer_has_act(product)) return false;
    for (int k = 0; k < 2; k++) {
        const affine gate = affine_of(p, product->in[1 - k]), from = affine_of(p, product->in[k]);
        const affine own = {product->in[k], 1, 0}, choices[] = {own, from};
        for (int i = 0; i < 2; i++) {
            const affine x = choices[i];
            const hp_act act = x.bias == 0 ? gated(p, gate, whole * x.factor, x.tensor) : HP_ACT_NONE;
            if (act == HP_ACT_NONE) continue;
            onnx_replace_layer(p, l, HP_ACT, act, x.tensor);
            return true;
        }
    }
    return false;
}

bool onnx_act_pattern(onnx_passes *p, hp_layer *l) {
    return hard_swish(p, l) || gated_product(p, l);
}
