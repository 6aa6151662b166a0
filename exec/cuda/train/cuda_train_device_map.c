/* cuda_train_device_map.c - products of maps, parametric ReLU, interpolation, gathers and reductions of
 * channels: the arguments of their kernels. */
#include "exec/cuda/train/cuda_train_device.h"

static hp_cuda_mul mul_of(const hp_bound *b) {
    const hp_shape *s = &b->shape;
    return (hp_cuda_mul){.x = b->x[0],
                         .second = b->x[1],
                         .vector = hp_box_elems(&b->map.in_box[1]) != b->out_elems,
                         .samples = s->n,
                         .pixels = (int64_t)s->oh * s->ow,
                         .channels = s->oc,
                         .clamp = hp_clamp_of(b->layer),
                         .partial = b->scratch.at};
}

hp_status hp_cuda_mul_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    hp_cuda_mul m = mul_of(b);
    (void)self;
    m.to = b->y;
    HP_CUDA(hp_cuda_multiply(hp_cuda_elements(d, b), &m, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_mul_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    hp_cuda_mul m = mul_of(b);
    (void)self;
    m.dy = b->dy;
    m.y = hp_layer_has_act(b->layer) ? b->y : NULL;
    m.dx = b->dx[0];
    m.dsecond = b->dx[1];
    HP_CUDA(hp_cuda_multiply_backward(hp_cuda_elements(d, b), &m, d->cuda->compute));
    return HP_OK;
}

static hp_cuda_prelu prelu_of(const hp_bound *b) {
    return (hp_cuda_prelu){.x = b->x[0],
                           .slope = b->param[0],
                           .one = b->layer->groups == 1,
                           .pixels = hp_cuda_pixels(&b->shape),
                           .channels = b->shape.oc,
                           .add = b->task->flags & HP_FLAG_ADD,
                           .grad = b->grad[0],
                           .partial = b->scratch.at};
}

hp_status hp_cuda_prelu_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    hp_cuda_prelu p = prelu_of(b);
    (void)self;
    p.to = b->y;
    HP_CUDA(hp_cuda_prelu_map(hp_cuda_elements(d, b), &p, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_prelu_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    hp_cuda_prelu p = prelu_of(b);
    (void)self;
    p.dy = b->dy;
    p.to = b->dx[0];
    HP_CUDA(hp_cuda_prelu_slopes(hp_cuda_elements(d, b), &p, d->cuda->compute));
    if (p.to) HP_CUDA(hp_cuda_prelu_map(hp_cuda_elements(d, b), &p, d->cuda->compute));
    return HP_OK;
}

static hp_cuda_resize resize_of(const hp_bound *b) {
    const hp_shape *s = &b->shape;
    return (hp_cuda_resize){.shape = *s,
                            .down = hp_resampling_of(b->layer, true, s->full.ih, s->full.oh),
                            .along = hp_resampling_of(b->layer, false, s->full.iw, s->full.ow)};
}

hp_status hp_cuda_resize_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const hp_cuda_resize r = resize_of(b);
    (void)self;
    HP_CUDA(hp_cuda_resize_forward(hp_cuda_elements(d, b), b->y, b->x[0], &r, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_resize_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const hp_cuda_resize r = resize_of(b);
    (void)self;
    HP_CUDA(hp_cuda_resize_backward(hp_cuda_elements(d, b), b->dx[0], b->dy, &r, d->cuda->compute));
    return HP_OK;
}

static hp_cuda_gather gather_of(const hp_bound *b) {
    return (hp_cuda_gather){
        .shape = b->shape, .rule = hp_gathering_of(b->layer), .first = b->map.in_box[0].lo[HP_AXIS_C]};
}

hp_status hp_cuda_gather_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const hp_cuda_gather g = gather_of(b);
    (void)self;
    HP_CUDA(hp_cuda_gather_forward(hp_cuda_elements(d, b), b->y, b->x[0], &g, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_gather_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const hp_cuda_gather g = gather_of(b);
    (void)self;
    HP_CUDA(hp_cuda_gather_backward(hp_cuda_elements(d, b), b->dx[0], b->dy, &g, d->cuda->compute));
    return HP_OK;
}

static hp_cuda_reduce reduce_of(const hp_bound *b) {
    return (hp_cuda_reduce){
        .pixels = hp_cuda_pixels(&b->shape), .channels = b->shape.ic, .kind = b->layer->reduction};
}

hp_status hp_cuda_reduce_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const hp_cuda_reduce r = reduce_of(b);
    (void)self;
    HP_CUDA(hp_cuda_reduce_forward(hp_cuda_elements(d, b), b->y, b->x[0], &r, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_reduce_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const hp_cuda_reduce r = reduce_of(b);
    (void)self;
    HP_CUDA(hp_cuda_reduce_backward(hp_cuda_elements(d, b), b->dx[0], b->dy, b->x[0], &r, d->cuda->compute));
    return HP_OK;
}
