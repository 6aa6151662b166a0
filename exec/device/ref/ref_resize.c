/* ref_resize.c - interpolation and its transpose, float64. */
#include "exec/device/ref/ref.h"
#include "networks/graph/resample.h"

#include <string.h>

/* Calls `visit` for each pixel that an output pixel reads, with its share. Pixels are given by their first
 * element. */
typedef void share_fn(const hp_bound *b, int64_t out, int64_t in, double share);

static void every_share(const hp_bound *b, share_fn *visit) {
    const hp_shape *s = &b->shape;
    const hp_resampling down = hp_resampling_of(b->layer, true, s->full.ih, s->full.oh),
                        along = hp_resampling_of(b->layer, false, s->full.iw, s->full.ow);
    for (int64_t p = 0; p < s->n * s->oh * s->ow; p++) {
        const hp_taps rows = hp_taps_at(&down, s->oy0 + p / s->ow % s->oh),
                      cols = hp_taps_at(&along, s->ox0 + p % s->ow);
        const int64_t n = p / s->ow / s->oh;
        for (int j = 0; j < rows.n; j++)
            for (int k = 0; k < cols.n; k++)
                visit(b, p * s->oc, ((n * s->ih + rows.at[j] - s->iy0) * s->iw + cols.at[k] - s->ix0) * s->ic,
                      rows.share[j] * cols.share[k]);
    }
}

static void gather(const hp_bound *b, int64_t out, int64_t in, double share) {
    for (int c = 0; c < b->shape.oc; c++)
        ((double *)b->y)[out + c] += share * ((const double *)b->x[0])[in + c];
}

static void scatter(const hp_bound *b, int64_t out, int64_t in, double share) {
    for (int c = 0; c < b->shape.oc; c++)
        ((double *)b->dx[0])[in + c] += share * ((const double *)b->dy)[out + c];
}

void hp_ref_resize_fwd(const hp_bound *b, const hp_step *step) {
    (void)step;
    memset(b->y, 0, (size_t)b->out_elems * sizeof(double));
    every_share(b, gather);
}

void hp_ref_resize_bwd(const hp_bound *b, const hp_step *step) {
    (void)step;
    memset(b->dx[0], 0, (size_t)b->in_elems * sizeof(double));
    every_share(b, scatter);
}
