/* cuda_train_device_point.c - activation, sum and dropout tasks, loss, gradient sums and the optimiser: the
 * arguments of their kernels. */
#include "exec/cuda/train/cuda_train_device.h"

#include "exec/device/device_act.h"
#include "exec/device/metric.h"

hp_status hp_cuda_act_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const hp_act_args k = hp_act_args_of(b->layer);
    (void)self;
    if (hp_act_reads_x(b->layer))
        HP_CUDA(hp_cuda_act_forward(hp_cuda_elements(d, b), b->layer->act, b->y, b->x[0], b->out_elems,
                                    (float)k.a, (float)k.b, d->cuda->compute));
    else
        HP_CUDA(hp_cuda_clamp(hp_cuda_elements(d, b), b->y, b->x[0], NULL, b->out_elems,
                              hp_clamp_of(b->layer), d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_add_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    HP_CUDA(hp_cuda_clamp(hp_cuda_elements(d, b), b->y, b->x[0], b->x[1], b->out_elems, hp_clamp_of(b->layer),
                          d->cuda->compute));
    return HP_OK;
}

static hp_status masked(hp_device *d, const hp_bound *b, void *dx0, void *dx1, hp_error *err) {
    const void *y = hp_layer_has_act(b->layer) ? b->y : NULL;
    HP_CUDA(hp_cuda_mask(hp_cuda_elements(d, b), dx0, dx1, b->dy, y, b->out_elems, hp_clamp_of(b->layer),
                         d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_act_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const hp_act_args k = hp_act_args_of(b->layer);
    (void)self;
    if (!hp_act_reads_x(b->layer)) return masked(d, b, b->dx[0], NULL, err);
    HP_CUDA(hp_cuda_act_backward(hp_cuda_elements(d, b), b->layer->act, b->dx[0], b->dy, b->x[0],
                                 b->out_elems, (float)k.a, (float)k.b, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_add_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    return masked(d, b, b->dx[0], b->dx[1], err);
}

/* --- dropout --- */

static hp_status dropout(hp_device *d, const hp_bound *b, const void *from, void *to, hp_error *err) {
    const hp_dtype t = hp_cuda_elements(d, b);
    const hp_cuda_dropout o = {.elems = b->out_elems,
                               .shape = b->shape,
                               .first_sample = b->task->micro * b->step.micro_batch + b->map.sample0,
                               .replica_samples = b->step.micro * b->step.micro_batch,
                               .layer = (uint64_t)b->layer_id,
                               .p = (double)b->layer->p};
    if (!(b->task->flags & HP_FLAG_EVAL))
        HP_CUDA(hp_cuda_drop(t, to, from, &o, d->step, d->cuda->compute));
    else if (to != from)
        HP_CUDA(cudaMemcpyAsync(to, from, (size_t)(b->out_elems * hp_dtype_bytes(t)),
                                cudaMemcpyDeviceToDevice, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_dropout_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    return dropout(d, b, b->x[0], b->y, err);
}

hp_status hp_cuda_dropout_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    return dropout(d, b, b->dy, b->dx[0], err);
}

/* --- the end of a step --- */

static hp_cuda_loss loss_of(const hp_device *d, const hp_bound *b) {
    return (hp_cuda_loss){.logits = b->x[0],
                          .dlogits = b->y,
                          .labels = b->step.labels,
                          .rows = b->count,
                          .classes = b->map.in_c[0],
                          .all = b->loss.classes,
                          .first = b->loss.first_class,
                          .members = b->loss.members,
                          .sums = b->sums,
                          .first_sum = b->loss.first_sum,
                          .scale =
                              1 / ((double)b->step.batch * (double)b->step.pixels), /* rows of all ranks */
                          .step = d->step,
                          .partial = b->scratch.at,
                          .metric = b->step.metric};
}

hp_status hp_cuda_class_sums(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_loss l = loss_of(d, b);
    HP_TRY(
        hp_cuda_clear(d, b->sums, (int64_t)sizeof *b->sums * b->loss.members * b->count * HP_MAXSUMS, err));
    HP_CUDA(hp_cuda_maxsum(hp_cuda_operand_elements(d, b, 1), &l, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_loss_rows(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_loss l = loss_of(d, b);
    HP_CUDA(hp_cuda_softmax_loss(hp_cuda_operand_elements(d, b, 1), &l, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_accumulate(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    HP_CUDA(hp_cuda_accum(hp_cuda_operand_elements(d, b, 0), b->y, b->x[0], b->count, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_copy_part(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const size_t bytes = (size_t)(b->count * hp_dtype_bytes(b->dtype));
    if (b->task->flags & HP_FLAG_ADD) return hp_cuda_accumulate(d, b, self, err);
    HP_CUDA(cudaMemcpyAsync(b->y, b->x[0], bytes, cudaMemcpyDeviceToDevice, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_update_step(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_update a = {.w = b->update.weight,
                              .m = b->update.state[0],
                              .v = b->update.state[1],
                              .g = b->update.gradient,
                              .n = b->count,
                              .decayed = b->update.decayed,
                              .rows = b->step.pixels > 1 ? (double)b->step.batch * (double)b->step.pixels : 0,
                              .clips = b->update.clips,
                              .metric = b->step.metric,
                              .step = d->step};
    HP_CUDA(hp_cuda_descend(b->update.optimizer, &a, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_norm_of_gradients(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    HP_CUDA(hp_cuda_squares(b->update.gradient, b->count, b->scratch.at, b->step.metric, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_look_for_overflow(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    HP_CUDA(hp_cuda_finite(b->update.gradient, b->count, b->step.metric, d->cuda->compute));
    return HP_OK;
}
