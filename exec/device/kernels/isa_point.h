/* isa_point.h - elementwise kernels: one pass, limited by memory. */
#ifndef HP_ISA_POINT_H
#define HP_ISA_POINT_H

/* Written so that a NaN stays a NaN: a diverged training must be seen. */
static inline float point_clamp1(float v, hp_clamp k) {
    v = v < k.lo ? k.lo : v;
    return v > k.hi ? k.hi : v;
}

static void point_clamp(float *y, const float *x, int64_t n, hp_clamp k) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = point_clamp1(x[i], k);
}

static void point_clamp_bwd(float *dx, const float *dy, const float *y, int64_t n, hp_clamp k) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) dx[i] = ((y[i] > k.lo) & (y[i] < k.hi)) ? dy[i] : 0.0f;
}

static void point_add(float *y, const float *a, const float *b, int64_t n, hp_clamp k) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = point_clamp1(a[i] + b[i], k);
}

static void point_accum(float *dst, const float *src, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) dst[i] += src[i];
}

static void point_scale(float *y, const float *x, const float *factor, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * factor[i];
}

static void point_sgd(float *w, const float *g, float *m, int64_t n, float lr, float momentum, float decay) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float v = momentum * m[i] + (g[i] + decay * w[i]);
        m[i] = v;
        w[i] -= lr * v;
    }
}

#endif
