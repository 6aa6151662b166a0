/* isa_gradient.h - weight gradients of convolutions as matrix products: for every tap of the kernel,
 * dw[o][i] = sum over output pixels of dy[pixel][o] * x[pixel's input under that tap][i].
 *
 * GRADIENT_ROWS pixels at a time are copied into strips (dy) and panels (x) that the second-level cache
 * holds. oneDNN's kernels for dense (N, H, W, C) reach two thirds to nine tenths of that on the same shapes.
 */
#ifndef HP_ISA_GRADIENT_H
#define HP_ISA_GRADIENT_H

/* Copies `channels` values of one pixel into strips of `width`, `strip_step` apart; what is left of the last
 * is zero. */
static inline void gradient_row(float *to, const float *from, int channels, int width, int64_t strip_step) {
    for (int c = 0; c < channels; c += width, to += strip_step) {
        const int n = channels - c < width ? channels - c : width;
        if (n == width)
            memcpy(to, from + c, (size_t)width * sizeof *to);
        else {
            memset(to, 0, (size_t)width * sizeof *to);
            memcpy(to, from + c, (size_t)n * sizeof *to);
        }
    }
}

static inline void gradient_zero_row(float *to, int panels, int64_t panel_step) {
    for (int p = 0; p < panels; p++) memset(to + p * panel_step, 0, GEMM_PANEL * sizeof *to);
}

/* Rows first .. first+count of dy into strips. */
static void gradient_strips(float *a, const float *dy, const hp_shape *s, int64_t first, int64_t count,
                            int64_t depth) {
    for (int64_t k = 0; k < count; k++)
        gradient_row(a + k * GEMM_STRIP, dy + (first + k) * s->oc, s->oc, GEMM_STRIP, depth * GEMM_STRIP);
}

/* The inputs under tap (ky, kx) of output pixels first .. first+count into panels. */
static void gradient_panels(float *b, const float *x, const hp_shape *s, int ky, int kx, int64_t first,
                            int64_t count, int64_t depth, int panels) {
    for (int64_t k = 0; k < count; k++, b += GEMM_PANEL) {
        const int64_t pixel = first + k;
        const int iy = (int)(pixel / s->ow % s->oh) * s->sh - s->ph + ky * s->dh;
        const int ix = (int)(pixel % s->ow) * s->sw - s->pw + kx * s->dw;
        if (iy < 0 || iy >= s->ih || ix < 0 || ix >= s->iw)
            gradient_zero_row(b, panels, depth * GEMM_PANEL);
        else
            gradient_row(b, x + ((pixel / s->ow / s->oh * s->ih + iy) * s->iw + ix) * s->ic, s->ic,
                         GEMM_PANEL, depth * GEMM_PANEL);
    }
}

/* c (tap, padded oc, padded ic) to dw (oc, ic, tap). */
static void gradient_out(float *dw, const float *c, const hp_shape *s, int64_t tap_step, int64_t ldc,
                         bool add) {
    const int taps = s->kh * s->kw;
    for (int o = 0; o < s->oc; o++, c += ldc)
        for (int i = 0; i < s->ic; i++)
            for (int t = 0; t < taps; t++, dw++) *dw = (add ? *dw : 0.0f) + c[t * tap_step + i];
}

static void gradient_bwdw(float *dw, const float *x, const float *dy, const hp_shape *s, bool add,
                          float *scratch) {
    const int panels = (s->ic + GEMM_PANEL - 1) / GEMM_PANEL, taps = s->kh * s->kw;
    const int64_t outs = (s->oc + GEMM_STRIP - 1) / GEMM_STRIP * GEMM_STRIP,
                  ins = (int64_t)panels * GEMM_PANEL;
    const int64_t pixels = s->n * s->oh * s->ow,
                  depth = pixels < HP_GRADIENT_ROWS ? pixels : HP_GRADIENT_ROWS;
    const bool direct =
        taps == 1 && outs == s->oc && ins == s->ic; /* the product's layout is the canonical one */
    float *a = scratch, *b = a + depth * outs, *c = direct ? dw : b + depth * ins;
    for (int64_t first = 0; first < pixels; first += depth) {
        const int64_t count = pixels - first < depth ? pixels - first : depth;
        gradient_strips(a, dy, s, first, count, depth);
        for (int t = 0; t < taps; t++) {
            gradient_panels(b, x, s, t / s->kw, t % s->kw, first, count, depth, panels);
            gemm_transposed(c + t * outs * ins, a, b, outs, count, depth, panels,
                            first > 0 || (direct && add));
        }
    }
    if (!direct) gradient_out(dw, c, s, outs * ins, ins, add);
}

#endif
