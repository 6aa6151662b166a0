/* ref_gather.c - elements gathered by place (networks/graph/graph_gather.h), and channels reduced to one,
 * float64. */
#include "exec/device/ref/ref.h"
#include "networks/graph/graph_gather.h"

#include <string.h>

/* --- gather --- */

/* Element of the input's box for element i of the output's. */
static int64_t gathered_at(const hp_bound *b, int64_t i) {
    const hp_shape *s = &b->shape;
    const hp_layer *l = b->layer;
    const hp_gathering g = hp_gathering_of(l);
    const int64_t pixel = i / s->oc, n = pixel / s->ow / s->oh;
    const int64_t y = hp_gather_row(l->gather.border, s->oy0 + pixel / s->ow % s->oh - l->window.pad_h,
                                    (int64_t)s->full.ih * l->window.kh),
                  x = hp_gather_row(l->gather.border, s->ox0 + pixel % s->ow - l->window.pad_w,
                                    (int64_t)s->full.iw * l->window.kw);
    const int64_t block = y % l->window.kh * l->window.kw + x % l->window.kw;
    const int64_t c = hp_gather_channel(&g, block * l->gather.out_c + s->oc0 + i % s->oc);
    return ((n * s->ih + y / l->window.kh - s->iy0) * s->iw + x / l->window.kw - s->ix0) * s->ic + c -
           b->map.in_box[0].lo[HP_AXIS_C];
}

void hp_ref_gather_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const double *x = b->x[0];
    double *y = b->y;
    for (int64_t i = 0; i < b->out_elems; i++) y[i] = x[gathered_at(b, i)];
}

void hp_ref_gather_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const double *dy = b->dy;
    double *dx = b->dx[0];
    memset(dx, 0, (size_t)b->in_elems * sizeof *dx);
    for (int64_t i = 0; i < b->out_elems; i++) dx[gathered_at(b, i)] += dy[i];
}

/* --- reduce --- */

static int first_largest(const double *x, int n) {
    int best = 0;
    for (int c = 1; c < n; c++)
        if (x[c] > x[best]) best = c;
    return best;
}

static double mean(const double *x, int n) {
    double sum = 0;
    for (int c = 0; c < n; c++) sum += x[c];
    return sum / n;
}

void hp_ref_reduce_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const int n = b->shape.ic, kind = b->layer->reduction;
    for (int64_t i = 0; i < b->out_elems; i++) {
        const double *x = (const double *)b->x[0] + i * n;
        const int best = kind == HP_CHANNELS_MEAN ? 0 : first_largest(x, n);
        ((double *)b->y)[i] = kind == HP_CHANNELS_MEAN  ? mean(x, n)
                              : kind == HP_CHANNELS_MAX ? x[best]
                                                        : best;
    }
}

void hp_ref_reduce_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const int n = b->shape.ic;
    const double *dy = b->dy;
    for (int64_t i = 0; i < b->out_elems; i++) {
        double *dx = (double *)b->dx[0] + i * n;
        const int best = first_largest((const double *)b->x[0] + i * n, n);
        for (int c = 0; c < n; c++)
            dx[c] = b->layer->reduction == HP_CHANNELS_MEAN ? dy[i] / n : c == best ? dy[i] : 0;
    }
}
