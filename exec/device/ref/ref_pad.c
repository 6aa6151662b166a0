/* ref_pad.c - zeros around a map, float64: output pixel (oy, ox) is input pixel (oy - pad, ox - pad)
 * where there is one. */
#include "exec/device/ref/ref.h"

void hp_ref_pad_fwd(const hp_bound *b, const hp_step *step) {
    (void)step;
    const hp_shape *s = &b->shape;
    const double *x = b->x[0];
    double *y = b->y;
    for (int64_t i = 0; i < b->out_elems; i++) {
        const int64_t pixel = i / s->oc, n = pixel / s->ow / s->oh;
        const int iy = (int)(pixel / s->ow % s->oh) - s->ph, ix = (int)(pixel % s->ow) - s->pw;
        const bool inside = iy >= 0 && iy < s->ih && ix >= 0 && ix < s->iw;
        y[i] = inside ? x[((n * s->ih + iy) * s->iw + ix) * s->ic + i % s->oc] : 0;
    }
}

void hp_ref_pad_bwd(const hp_bound *b, const hp_step *step) {
    (void)step;
    const hp_shape *s = &b->shape;
    const double *dy = b->dy;
    double *dx = b->dx[0];
    for (int64_t i = 0; i < b->in_elems; i++) {
        const int64_t pixel = i / s->ic, n = pixel / s->iw / s->ih;
        const int oy = (int)(pixel / s->iw % s->ih) + s->ph, ox = (int)(pixel % s->iw) + s->pw;
        const bool inside = oy >= 0 && oy < s->oh && ox >= 0 && ox < s->ow;
        dx[i] = inside ? dy[((n * s->oh + oy) * s->ow + ox) * s->oc + i % s->ic] : 0;
    }
}
