/* cpu_resize.c - interpolation and its transpose: rows of a pixel's channels, pixel by pixel. */
#include "exec/device/cpu/cpu_train.h"
#include "networks/graph/resample.h"

#include <string.h>

static void add_share(float *sum, const float *x, float share, int n) {
    for (int c = 0; c < n; c++) sum[c] += share * x[c];
}

/* Visits each input pixel that an output pixel reads, with its share; indices of their first channels. */
typedef void share_fn(const hp_bound *b, int64_t out, int64_t in, float share);

static void every_share(const hp_bound *b, share_fn *visit) {
    const hp_shape *s = &b->shape;
    const hp_resampling down = hp_resampling_of(b->layer, true, s->full.ih, s->full.oh),
                        along = hp_resampling_of(b->layer, false, s->full.iw, s->full.ow);
    for (int64_t r = 0; r < s->n * s->oh; r++) {
        const hp_taps rows = hp_taps_at(&down, s->oy0 + r % s->oh);
        for (int x = 0; x < s->ow; x++) {
            const hp_taps cols = hp_taps_at(&along, s->ox0 + x);
            for (int j = 0; j < rows.n; j++) {
                const int64_t line = (r / s->oh * s->ih + rows.at[j] - s->iy0) * s->iw;
                for (int k = 0; k < cols.n; k++)
                    visit(b, (r * s->ow + x) * s->oc, (line + cols.at[k] - s->ix0) * s->ic,
                          (float)(rows.share[j] * cols.share[k]));
            }
        }
    }
}

static void gather(const hp_bound *b, int64_t out, int64_t in, float share) {
    add_share((float *)b->y + out, (const float *)b->x[0] + in, share, b->shape.oc);
}

static void scatter_wide(const hp_bound *b, int64_t out, int64_t in, float share) {
    double *sum = (double *)b->scratch.at + in;
    const float *dy = (const float *)b->dy + out;
    for (int c = 0; c < b->shape.oc; c++) sum[c] += (double)share * (double)dy[c];
}

static void scatter(const hp_bound *b, int64_t out, int64_t in, float share) {
    add_share((float *)b->dx[0] + in, (const float *)b->dy + out, share, b->shape.oc);
}

hp_status hp_cpu_resize_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d, (void)s, (void)err;
    memset(b->y, 0, (size_t)b->out_elems * sizeof(float));
    every_share(b, gather);
    return HP_OK;
}

hp_status hp_cpu_resize_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d, (void)s, (void)err;
    if (hp_cpu_spread_begin(b)) {
        every_share(b, scatter_wide);
        hp_cpu_spread_end(b);
    } else {
        every_share(b, scatter);
    }
    return HP_OK;
}
