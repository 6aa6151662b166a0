/* loops_act.h - activations of a row. */
#ifndef HP_LOOPS_ACT_H
#define HP_LOOPS_ACT_H

typedef void act_fn(real *y, const real *x, int64_t n, const hp_infer_op *o);

/* Written so that a NaN stays a NaN. */
static inline real clamped(real v, real lo, real hi) {
    v = v < lo ? lo : v;
    return v > hi ? hi : v;
}

static void act_clamp(real *y, const real *x, int64_t n, const hp_infer_op *o) {
    const real lo = (real)o->lo, hi = (real)o->hi;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = clamped(x[i], lo, hi);
}

static void act_sigmoid(real *y, const real *x, int64_t n, const hp_infer_op *o) {
    (void)o;
    for (int64_t i = 0; i < n; i++) y[i] = 1 / (1 + REAL_EXP(-x[i]));
}

static void act_hsigmoid(real *y, const real *x, int64_t n, const hp_infer_op *o) {
    const real a = (real)o->act_a, b = (real)o->act_b;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = clamped(a * x[i] + b, 0, 1);
}

static void act_hswish(real *y, const real *x, int64_t n, const hp_infer_op *o) {
    (void)o;
    const real sixth = (real)(1.0 / 6.0), half = (real)0.5;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * clamped(x[i] * sixth + half, 0, 1);
}

static void act_leaky(real *y, const real *x, int64_t n, const hp_infer_op *o) {
    const real a = (real)o->act_a;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? a * x[i] : x[i];
}

static void act_tanh(real *y, const real *x, int64_t n, const hp_infer_op *o) {
    (void)o;
    for (int64_t i = 0; i < n; i++) y[i] = REAL_TANH(x[i]);
}

static act_fn *const acts[HP_ACTS] = {
    [HP_ACT_RELU] = act_clamp,      [HP_ACT_RELU6] = act_clamp,       [HP_ACT_CLIP] = act_clamp,
    [HP_ACT_SIGMOID] = act_sigmoid, [HP_ACT_HSIGMOID] = act_hsigmoid, [HP_ACT_HSWISH] = act_hswish,
    [HP_ACT_LEAKY] = act_leaky,     [HP_ACT_TANH] = act_tanh,
};

/* The row after the activation: x itself, or y. */
static const real *activated(real *y, const real *x, int64_t n, const hp_infer_op *o) {
    if (!acts[o->act]) return x;
    acts[o->act](y, x, n, o);
    return y;
}

#endif
