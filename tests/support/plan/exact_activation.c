/* exact_activation.c - activations by their definitions, in float64. */
#include "tests/support/plan/exact_activation.h"

#include "networks/graph/acts.h"

#include <math.h>

double exact_activation(const hp_layer *l, double v) {
    switch ((hp_act)l->act) {
    case HP_ACT_RELU:
        return fmax(v, 0);
    case HP_ACT_RELU6:
        return fmin(fmax(v, 0), 6);
    case HP_ACT_CLIP:
        return fmin(fmax(v, l->act_arg.a), l->act_arg.b);
    case HP_ACT_SIGMOID:
        return 1 / (1 + exp(-v));
    case HP_ACT_HSIGMOID:
        return fmin(fmax(l->act_arg.a * v + l->act_arg.b, 0), 1);
    case HP_ACT_HSWISH:
        return v * fmin(fmax(v / 6 + 0.5, 0), 1);
    case HP_ACT_LEAKY:
        return v < 0 ? l->act_arg.a * v : v;
    case HP_ACT_TANH:
        return tanh(v);
    case HP_ACT_ERF:
        return erf(v);
    case HP_ACT_GELU:
        return v * (1 + erf(v / sqrt(2))) / 2;
    case HP_ACT_GELU_TANH:
        return v * (1 + tanh(sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v))) / 2;
    case HP_ACT_SILU:
        return v / (1 + exp(-v));
    case HP_ACT_MISH:
        return v * tanh(log1p(exp(v)));
    case HP_ACT_ELU:
        return v < 0 ? l->act_arg.a * expm1(v) : v;
    case HP_ACT_CELU:
        return v < 0 ? l->act_arg.a * expm1(v / l->act_arg.a) : v;
    case HP_ACT_SELU:
        return l->act_arg.b * (v < 0 ? l->act_arg.a * expm1(v) : v);
    case HP_ACT_SOFTPLUS:
        return log1p(exp(v));
    case HP_ACT_SOFTSIGN:
        return v / (1 + fabs(v));
    case HP_ACT_THRESHOLDED:
        return v > l->act_arg.a ? v : 0;
    default:
        return v;
    }
}
