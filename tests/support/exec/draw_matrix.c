/* draw_matrix.c - term counts for tests of drawn convolutions and products. */
#include "tests/support/exec/draw_matrix.h"

double terms_of(const draw *d) {
    const double taps =
        d->layer.op == HP_LINEAR ? d->in[0].h * d->in[0].w : d->layer.window.kh * d->layer.window.kw;
    return fmax(taps * fmax(d->in[0].c, d->out.c), (double)(d->samples * d->out.h * d->out.w)) + 2;
}

bool begins_inside(const draw *d) {
    const hp_layer *l = &d->layer;
    return l->op != HP_CONV || ((d->out.h - 1) * l->window.stride_h - l->window.pad_h < d->in[0].h &&
                                (d->out.w - 1) * l->window.stride_w - l->window.pad_w < d->in[0].w);
}
