/* isa_any.h - convolution of any shape, groups, dilation: where the library has no kernel. Correct before
 * fast. */
#ifndef HP_ISA_ANY_H
#define HP_ISA_ANY_H

typedef struct any_taps {
    int first, count; /* input channels of the output channel's group */
} any_taps;

static any_taps any_group(const hp_shape *s, int o) {
    const int count = s->ic / s->groups;
    return (any_taps){o / (s->oc / s->groups) * count, count};
}

static float any_output(const float *x, const float *w, const hp_shape *s, int oy, int ox, any_taps g) {
    double sum = 0;
    for (int ky = 0; ky < s->kh; ky++)
        for (int kx = 0; kx < s->kw; kx++) {
            const int iy = oy * s->sh - s->ph + ky * s->dh, ix = ox * s->sw - s->pw + kx * s->dw;
            if (iy < 0 || iy >= s->ih || ix < 0 || ix >= s->iw) continue;
            const float *v = x + ((int64_t)iy * s->iw + ix) * s->ic + g.first;
            for (int c = 0; c < g.count; c++)
                sum += (double)(v[c] * w[((int64_t)c * s->kh + ky) * s->kw + kx]);
        }
    return (float)sum;
}

static void any_fwd(float *y, const float *x, const float *w, const float *bias, const hp_shape *s) {
    const int64_t image = (int64_t)s->ih * s->iw * s->ic,
                  filter = (int64_t)(s->ic / s->groups) * s->kh * s->kw;
    for (int64_t p = 0; p < s->n * s->oh * s->ow; p++)
        for (int o = 0; o < s->oc; o++)
            *y++ = any_output(x + p / s->ow / s->oh * image, w + o * filter, s, (int)(p / s->ow % s->oh),
                              (int)(p % s->ow), any_group(s, o)) +
                   (bias ? bias[o] : 0.0f);
}

static void any_bwd_output(float *dx, float dy, const float *w, const hp_shape *s, int oy, int ox,
                           any_taps g) {
    for (int ky = 0; ky < s->kh; ky++)
        for (int kx = 0; kx < s->kw; kx++) {
            const int iy = oy * s->sh - s->ph + ky * s->dh, ix = ox * s->sw - s->pw + kx * s->dw;
            if (iy < 0 || iy >= s->ih || ix < 0 || ix >= s->iw) continue;
            float *d = dx + ((int64_t)iy * s->iw + ix) * s->ic + g.first;
            for (int c = 0; c < g.count; c++) d[c] += dy * w[((int64_t)c * s->kh + ky) * s->kw + kx];
        }
}

static void any_bwd(float *dx, const float *dy, const float *w, const hp_shape *s) {
    const int64_t image = (int64_t)s->ih * s->iw * s->ic,
                  filter = (int64_t)(s->ic / s->groups) * s->kh * s->kw;
    memset(dx, 0, (size_t)(s->n * image) * sizeof *dx);
    for (int64_t p = 0; p < s->n * s->oh * s->ow; p++)
        for (int o = 0; o < s->oc; o++)
            any_bwd_output(dx + p / s->ow / s->oh * image, *dy++, w + o * filter, s, (int)(p / s->ow % s->oh),
                           (int)(p % s->ow), any_group(s, o));
}

/* Gradient of one weight: output channel o, input channel c, tap (ky, kx). */
static float any_weight(const float *x, const float *dy, const hp_shape *s, int o, int c, int ky, int kx) {
    double sum = 0;
    for (int64_t p = 0; p < s->n * s->oh * s->ow; p++) {
        const int iy = (int)(p / s->ow % s->oh) * s->sh - s->ph + ky * s->dh;
        const int ix = (int)(p % s->ow) * s->sw - s->pw + kx * s->dw;
        if (iy < 0 || iy >= s->ih || ix < 0 || ix >= s->iw) continue;
        sum += (double)(dy[p * s->oc + o] * x[((p / s->ow / s->oh * s->ih + iy) * s->iw + ix) * s->ic + c]);
    }
    return (float)sum;
}

static void any_bwdw(float *dw, const float *x, const float *dy, const hp_shape *s, bool add) {
    for (int o = 0; o < s->oc; o++)
        for (int c = 0; c < s->ic / s->groups; c++)
            for (int k = 0; k < s->kh * s->kw; k++, dw++) {
                const float v = any_weight(x, dy, s, o, any_group(s, o).first + c, k / s->kw, k % s->kw);
                *dw = (add ? *dw : 0.0f) + v;
            }
}

static void any_bias_bwd(float *db, const float *dy, int64_t rows, int channels, bool add, float *tmp) {
    if (!add) memset(db, 0, (size_t)channels * sizeof *db);
    memset(tmp, 0, (size_t)channels * sizeof *tmp);
    for (int64_t r = 0; r < rows; r++) {
        point_accum(tmp, dy + r * channels, channels);
        if (r % NORM_BLOCK < NORM_BLOCK - 1 && r < rows - 1) continue;
        point_accum(db, tmp, channels);
        memset(tmp, 0, (size_t)channels * sizeof *tmp);
    }
}

#endif
