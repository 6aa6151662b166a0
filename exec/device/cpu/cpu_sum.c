/* cpu_sum.c - sums blocks of channels and adds a bias: the summands of a linear layer that ranks share
 * (networks/graph/summands.h). */
#include "exec/device/cpu/cpu_train.h"

#include <math.h>
#include <string.h>

static const hp_clamp no_clamp = {-INFINITY, INFINITY};

static int64_t pixels_of(const hp_bound *b) {
    return b->out_elems / b->shape.oc;
}

/* y may alias the only block. */
static void sum_pixel(hp_device *d, const hp_bound *b, float *y, const float *x) {
    const int n = b->shape.oc;
    if (b->layer->n_param > 0)
        d->kernels->point.add(y, x, b->param[0], n, no_clamp);
    else if (y != x)
        memcpy(y, x, (size_t)n * sizeof *y);
    for (int c = n; c < b->shape.ic; c += n) d->kernels->point.accum(y, x + c, n);
}

hp_status hp_cpu_sum_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    for (int64_t i = 0; i < pixels_of(b); i++)
        sum_pixel(d, b, (float *)b->y + i * b->shape.oc, (const float *)b->x[0] + i * b->shape.ic);
    return HP_OK;
}

hp_status hp_cpu_sum_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    const int n = b->shape.oc;
    const size_t bytes = (size_t)n * sizeof(float);
    const float *dy = b->dy;
    float *dx = b->dx[0];
    if (b->layer->n_param > 0)
        d->kernels->sum.rows(b->grad[0], dy, pixels_of(b), n, b->task->flags & HP_FLAG_ADD);
    if (!dx || dx == dy) return HP_OK;
    for (int64_t i = 0; i < pixels_of(b); i++)
        for (int c = 0; c < b->shape.ic; c += n) memcpy(dx + i * b->shape.ic + c, dy + i * n, bytes);
    return HP_OK;
}
