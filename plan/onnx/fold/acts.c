/* acts.c - activations that exporters write as several nodes become one layer. */
#include "plan/onnx/fold/simplify.h"

#include <math.h>

/* --- what layers are --- */

static bool is_factor(const onnx_passes *p, const hp_layer *l, double value) {
    return l && l->op == HP_SCALE && l->act == HP_ACT_NONE && l->n_param == 1 && onnx_all_are(p, l, 0, value);
}

static bool is_shift(const onnx_passes *p, const hp_layer *l, double value) {
    return l && l->n_param == 2 && onnx_all_are(p, l, 0, 1) && onnx_all_are(p, l, 1, value);
}

/* --- hard swish: x clamp(x + 3, 0, 6) / 6, the division anywhere, or x hardsigmoid(x) --- */

/* Is `tensor` clamp(x + 3, 0, 6), with no other reader? */
static bool is_clamped(const onnx_passes *p, int32_t tensor, int32_t x) {
    const hp_layer *clip = onnx_sole_maker(p, tensor, HP_ACT);
    if (!clip ||
        !(clip->act == HP_ACT_RELU6 || (clip->act == HP_ACT_CLIP && clip->act_a == 0 && clip->act_b == 6)))
        return false;
    const hp_layer *shift = onnx_sole_maker(p, clip->in[0], HP_SCALE);
    return is_shift(p, shift, 3) && shift->in[0] == x;
}

static bool is_gate(const onnx_passes *p, int32_t tensor, int32_t x) {
    const hp_layer *gate = onnx_sole_maker(p, tensor, HP_ACT), *sixth = onnx_sole_maker(p, tensor, HP_SCALE);
    if (gate && gate->act == HP_ACT_HSIGMOID)
        return gate->in[0] == x && fabs(gate->act_a - 1.0 / 6) < 1e-6 && gate->act_b == 0.5;
    return is_factor(p, sixth, 1.0 / 6) && is_clamped(p, sixth->in[0], x);
}

static bool hard_swish(onnx_passes *p, hp_layer *l) {
    const bool sixth = is_factor(p, l, 1.0 / 6);
    const hp_layer *product = l->op == HP_MUL ? l : sixth ? onnx_sole_maker(p, l->in[0], HP_MUL) : NULL;
    if (!product || product->act != HP_ACT_NONE) return false;
    for (int k = 0; k < 2; k++) {
        const int32_t x = product->in[k], gate = product->in[1 - k];
        if (sixth ? !is_clamped(p, gate, x) : !is_gate(p, gate, x)) continue;
        onnx_replace_layer(p, l, HP_ACT, HP_ACT_HSWISH, x);
        return true;
    }
    return false;
}

bool onnx_act_pattern(onnx_passes *p, hp_layer *l) {
    return hard_swish(p, l);
}
