/* cpu_gradient.c - weight gradients of convolutions, band by band (plan/memory/gradient_bands.h). Any kernel
 * sums a band of a few thousand pixels in float32; bands are added in float64. */
#include "exec/device/cpu/cpu_train.h"
#include "plan/memory/memory_device.h"
#include "plan/memory/gradient_bands.h"

/* Memory at the end of scratch: the sums, then a band's gradient. */
static double *sums_of(const hp_bound *b, int64_t scratch_bytes) {
    return (double *)(void *)((unsigned char *)b->scratch.at + scratch_bytes - hp_gradient_bytes(&b->shape));
}

static bool by_library(const hp_conv_choice *c) {
    return !c->winograd && !c->gemm_gradient;
}

hp_status hp_cpu_gradient_prepare(hp_device *d, const hp_bound *b, int64_t scratch_bytes, hp_error *err) {
    const int64_t n = hp_gradient_bands(&b->shape);
    const hp_onednn_limits limits = {0, scratch_bytes - hp_gradient_bytes(&b->shape)};
    hp_conv_choice *c = &d->conv[hp_cpu_task_of(d, b)];
    c->gemm_gradient = hp_conv_gemm_gradient(d->config.graph, b->layer_id);
    if (n > 1) c->sums = sums_of(b, scratch_bytes);
    if (!by_library(c)) return HP_OK;
    c->band = HP_NEW(d->arena, hp_onednn_kernel *, n);
    for (int64_t k = 0; k < n; k++) {
        const hp_shape band = hp_gradient_band_of(&b->shape, k).shape;
        if (band.ih > 0)
            HP_TRY(hp_onednn_kernel_find(d->library, HP_ONEDNN_BACKWARD_WEIGHTS, &band, false, limits,
                                         &c->band[k], err));
    }
    c->library = c->band[0];
    return HP_OK;
}

/* Computes dw of band k: written, or added to. */
static hp_status run_band(hp_device *d, const hp_bound *b, int64_t k, float *dw, bool add, hp_error *err) {
    const hp_conv_choice *c = &d->conv[hp_cpu_task_of(d, b)];
    const hp_gradient_band g = hp_gradient_band_of(&b->shape, k);
    const float *x = (const float *)b->x[0] + g.x * b->shape.ic,
                *dy = (const float *)b->dy + g.y * b->shape.oc;
    if (c->winograd)
        d->kernels->conv.wino_bwdw(dw, x, dy, &g.shape, add, b->scratch.at);
    else if (c->gemm_gradient)
        d->kernels->conv.gemm_bwdw(dw, x, dy, &g.shape, add, b->scratch.at);
    else if (c->band[k])
        return hp_onednn_backward_weights(c->band[k], dw, x, dy, add, b->scratch.at, err);
    else
        d->kernels->conv.any_bwdw(dw, x, dy, &g.shape, add);
    return HP_OK;
}

hp_status hp_cpu_gradient(hp_device *d, const hp_bound *b, float *dw, bool add, hp_error *err) {
    const int64_t bands = hp_gradient_bands(&b->shape), n = hp_gradient_weights(&b->shape);
    if (bands == 1) return run_band(d, b, 0, dw, add, err);
    double *sums = d->conv[hp_cpu_task_of(d, b)].sums;
    float *part = (float *)(sums + n);
    for (int64_t i = 0; i < n; i++) sums[i] = add ? (double)dw[i] : 0;
    for (int64_t k = 0; k < bands; k++) {
        HP_TRY(run_band(d, b, k, part, false, err));
        d->kernels->point.accum_wide(sums, part, n);
    }
    for (int64_t i = 0; i < n; i++) dw[i] = (float)sums[i];
    return HP_OK;
}
