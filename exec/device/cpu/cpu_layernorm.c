/* cpu_layernorm.c - layer norm and RMS norm tasks. */
#include "exec/device/cpu/cpu_train.h"

static hp_layernorm norm_of(const hp_bound *b) {
    return (hp_layernorm){.pixels = b->out_elems / b->shape.oc,
                          .ins = b->shape.ic,
                          .first = b->shape.oc0,
                          .outs = b->shape.oc,
                          .eps = (float)b->layer->eps,
                          .centred = b->layer->op == HP_LAYERNORM};
}

hp_status hp_cpu_layernorm_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    const hp_layernorm l = norm_of(b);
    d->kernels->layernorm.fwd(b->y, b->x[0], b->param[0], b->param[1], &l);
    return HP_OK;
}

static void put_gradient(const hp_bound *b, float *to, const double *from) {
    const bool add = b->task->flags & HP_FLAG_ADD;
    for (int c = 0; to && c < b->shape.oc; c++) to[c] = (add ? to[c] : 0.0f) + (float)from[c];
}

/* Scratch: two rows of float64, two of float32 (plan/memory/memory_device.c). */
hp_status hp_cpu_layernorm_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    const hp_layernorm l = norm_of(b);
    double *dgamma = b->scratch.at, *dbeta = dgamma + l.outs;
    float *tmp = (float *)(dbeta + l.outs);
    d->kernels->layernorm.bwd(b->dx[0], dgamma, dbeta, b->dy, b->x[0], b->param[0], &l, tmp);
    put_gradient(b, b->grad[0], dgamma);
    put_gradient(b, b->grad[1], dbeta);
    return HP_OK;
}
