/* ref_pool.c - maximum, mean and adaptive mean pooling, float64. */
#include "exec/device/ref/ref.h"

#include <string.h>

/* The part of one output's window that lies in the image, and what a mean divides by. */
typedef struct window {
    int y0, y1, x0, x1;
    double divisor;
} window;

static int smaller(int a, int b) {
    return a < b ? a : b;
}

static int larger(int a, int b) {
    return a > b ? a : b;
}

/* Along one axis: the elements a window covers, in the box, and how many it counts with the padding around
 * the whole map. */
typedef struct span {
    int first, end, padded;
} span;

static span pool_span(int o, int out0, int in, int in0, int full, int k, int stride, int pad) {
    const int from = (out0 + o) * stride - pad, to = smaller(from + k, full + pad);
    return (span){larger(from - in0, 0), smaller(to - in0, in), to - from};
}

static window pool_window(const hp_bound *b, int oy, int ox) {
    const hp_shape *s = &b->shape;
    const span y = pool_span(oy, s->oy0, s->ih, s->iy0, s->full.ih, s->kh, s->sh, b->layer->window.pad_h),
               x = pool_span(ox, s->ox0, s->iw, s->ix0, s->full.iw, s->kw, s->sw, b->layer->window.pad_w);
    const int inside = (y.end - y.first) * (x.end - x.first);
    return (window){y.first, y.end, x.first, x.end,
                    b->layer->window.count_include_pad ? (double)y.padded * x.padded : (double)inside};
}

static span adaptive_span(int64_t o, int64_t full_in, int64_t full_out, int in0) {
    return (span){(int)(o * full_in / full_out) - in0,
                  (int)(((o + 1) * full_in + full_out - 1) / full_out) - in0, 0};
}

static window adaptive_window(const hp_bound *b, int oy, int ox) {
    const hp_shape *s = &b->shape;
    const span y = adaptive_span(s->oy0 + oy, s->full.ih, s->full.oh, s->iy0),
               x = adaptive_span(s->ox0 + ox, s->full.iw, s->full.ow, s->ix0);
    return (window){y.first, y.end, x.first, x.end, (double)(y.end - y.first) * (x.end - x.first)};
}

typedef window window_fn(const hp_bound *b, int oy, int ox);

/* Forward: output = mean of its window. Backward: every input of the window gets its share of dy. */
static void mean_pool(const hp_bound *b, window_fn *window_of, const double *dy, double *x, double *y) {
    const hp_shape *s = &b->shape;
    for (int64_t o = 0; o < b->out_elems; o++) {
        const int c = (int)(o % s->oc), ox = (int)(o / s->oc % s->ow), oy = (int)(o / s->oc / s->ow % s->oh);
        const int64_t n = o / s->oc / s->ow / s->oh;
        const window w = window_of(b, oy, ox);
        double sum = 0;
        for (int iy = w.y0; iy < w.y1; iy++)
            for (int ix = w.x0; ix < w.x1; ix++) {
                double *at = &x[((n * s->ih + iy) * s->iw + ix) * s->ic + c];
                if (dy)
                    *at += dy[o] / w.divisor;
                else
                    sum += *at;
            }
        if (!dy) y[o] = sum / w.divisor;
    }
}

static void mean_pool_backward(const hp_bound *b, window_fn *window_of) {
    memset(b->dx[0], 0, (size_t)b->in_elems * sizeof(double));
    mean_pool(b, window_of, b->dy, b->dx[0], NULL);
}

void hp_ref_avgpool_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    mean_pool(b, pool_window, NULL, b->x[0], b->y);
}

void hp_ref_avgpool_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    mean_pool_backward(b, pool_window);
}

void hp_ref_adaptpool_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    mean_pool(b, adaptive_window, NULL, b->x[0], b->y);
}

void hp_ref_adaptpool_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    mean_pool_backward(b, adaptive_window);
}

/* Index of the output's first maximum within the kernel, and its input element. */
static int64_t find_maximum(const hp_shape *s, const double *x, int64_t o, int *tap) {
    const int c = (int)(o % s->oc), ox = (int)(o / s->oc % s->ow), oy = (int)(o / s->oc / s->ow % s->oh);
    const int64_t n = o / s->oc / s->ow / s->oh;
    int64_t best = -1;
    for (int ky = 0; ky < s->kh; ky++)
        for (int kx = 0; kx < s->kw; kx++) {
            const int iy = oy * s->sh - s->ph + ky * s->dh, ix = ox * s->sw - s->pw + kx * s->dw;
            if (iy < 0 || iy >= s->ih || ix < 0 || ix >= s->iw) continue;
            const int64_t at = ((n * s->ih + iy) * s->iw + ix) * s->ic + c;
            if (best >= 0 && !(x[at] > x[best])) continue;
            best = at;
            *tap = ky * s->kw + kx;
        }
    return best;
}

void hp_ref_maxpool_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    double *y = b->y;
    uint8_t *save = b->save;
    for (int64_t o = 0; o < b->out_elems; o++) {
        int tap = 0;
        y[o] = ((const double *)b->x[0])[find_maximum(&b->shape, b->x[0], o, &tap)];
        if (save) save[o] = (uint8_t)tap;
    }
}

void hp_ref_maxpool_bwd(const hp_bound *b, const hp_step *step) {
    (void)step;
    const hp_shape *s = &b->shape;
    const uint8_t *save = b->save;
    const double *dy = b->dy;
    double *dx = b->dx[0];
    memset(dx, 0, (size_t)b->in_elems * sizeof *dx);
    for (int64_t o = 0; o < b->out_elems; o++) {
        const int c = (int)(o % s->oc), ox = (int)(o / s->oc % s->ow), oy = (int)(o / s->oc / s->ow % s->oh);
        const int64_t n = o / s->oc / s->ow / s->oh;
        const int iy = oy * s->sh - s->ph + save[o] / s->kw * s->dh,
                  ix = ox * s->sw - s->pw + save[o] % s->kw * s->dw;
        dx[((n * s->ih + iy) * s->iw + ix) * s->ic + c] += dy[o];
    }
}
