/* cuda_train_device_norm.c - batch norm, group norm and pooling: the arguments of their kernels. */
#include "exec/cuda/train/cuda_train_device.h"

/* --- batch norm --- */

/* As hp_running_factors, but kernels take the replica from the step. */
static void set_running(hp_cuda_norm *n, const hp_bound *b) {
    const int64_t skipped = b->task->forward.skipped, following = b->task->forward.following;
    const bool alone = b->step.bn != HP_BN_ALL, last = b->task->flags & HP_FLAG_LAST;
    n->running.fresh = (double)b->layer->momentum;
    n->running.keep = 1 - n->running.fresh;
    n->running.before[0] = (double)(1 + skipped);
    n->running.before[1] = b->task->flags & HP_FLAG_FIRST && alone ? b->step.micro : 0;
    n->running.after[0] =
        last ? (double)following + (alone ? (double)(b->step.dp - 1) * b->step.micro : 0) : 0;
    n->running.after[1] = last && alone ? -b->step.micro : 0;
}

static bool counts_whole(const hp_bound *b) {
    const int64_t whole[] = {b->shape.n, b->shape.oh, b->shape.ow};
    for (int a = HP_AXIS_N; b->sums && a <= HP_AXIS_W; a++)
        if (b->map.counted.lo[a] != 0 || b->map.counted.hi[a] != whole[a]) return false;
    return true;
}

static void set_params(hp_cuda_norm *n, const hp_bound *b) {
    n->gamma = b->param[0];
    n->beta = b->param[1];
    n->running.mean = b->param[2];
    n->running.var = b->param[3];
    n->gradient.gamma = b->grad[0];
    n->gradient.beta = b->grad[1];
}

static hp_cuda_norm norm_of(const hp_device *d, const hp_bound *b) {
    const hp_shape *s = &b->shape;
    hp_cuda_norm n = {.dtype = hp_cuda_elements(d, b),
                      .rows = hp_cuda_pixels(s),
                      .channels = s->oc,
                      .oh = s->oh,
                      .ow = s->ow,
                      .all = counts_whole(b),
                      .counted = b->map.counted,
                      .eps = (double)b->layer->eps,
                      .clamp = hp_clamp_of(b->layer),
                      .x = b->x[0],
                      .save = b->save,
                      .gradient.add = b->task->flags & HP_FLAG_ADD,
                      .sums = b->sums,
                      .scratch.partial = b->scratch.at,
                      .step = d->step};
    n.pixels = (double)(b->sums ? hp_norm_pixels(b->task) : n.rows);
    n.scratch.factor = (float *)((unsigned char *)b->scratch.at + hp_column_sums_bytes(n.rows, n.channels));
    set_params(&n, b);
    return n;
}

hp_status hp_cuda_norm_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    hp_cuda_norm n = norm_of(d, b);
    n.y = b->y;
    n.added = b->n_in > 1 ? b->x[1] : NULL;
    n.running.stays = b->task->flags & HP_FLAG_RECOMPUTE;
    set_running(&n, b);
    if (b->task->flags & HP_FLAG_EVAL)
        HP_CUDA(hp_cuda_norm_eval(&n, d->cuda->compute));
    else
        HP_CUDA(hp_cuda_norm_forward(&n, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_norm_sums(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_norm n = norm_of(d, b);
    HP_CUDA(hp_cuda_norm_stats(&n, d->cuda->compute));
    return HP_OK;
}

static hp_cuda_norm backward_of(const hp_device *d, const hp_bound *b) {
    hp_cuda_norm n = norm_of(d, b);
    n.y = hp_layer_has_act(b->layer) ? b->y : NULL;
    n.dy = b->dy;
    n.dx = b->dx[0];
    n.dadded = b->n_in > 1 ? b->dx[1] : NULL;
    return n;
}

hp_status hp_cuda_norm_bwd_sums(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_norm n = backward_of(d, b);
    HP_CUDA(hp_cuda_norm_backward_stats(&n, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_norm_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_norm n = backward_of(d, b);
    HP_CUDA(hp_cuda_norm_backward(&n, d->cuda->compute));
    return HP_OK;
}

/* --- group norm --- */

static hp_cuda_groupnorm groupnorm_of(const hp_device *d, const hp_bound *b) {
    const hp_shape *s = &b->shape;
    const bool shifts = b->layer->n_param > 1;
    const int32_t width = s->full.oc / b->layer->groups;
    hp_cuda_groupnorm g = {.dtype = hp_cuda_elements(d, b),
                           .shape = *s,
                           .width = width,
                           .first = s->oc0 - b->map.in_box[0].lo[HP_AXIS_C],
                           .add = b->task->flags & HP_FLAG_ADD,
                           .eps = (double)b->layer->eps,
                           .share = 1 / ((double)s->ih * s->iw * width),
                           .x = b->x[0],
                           .dy = b->dy,
                           .y = b->y,
                           .dx = b->dx[0],
                           .gamma = b->param[0],
                           .beta = shifts ? b->param[1] : NULL,
                           .dgamma = b->grad[0],
                           .dbeta = shifts ? b->grad[1] : NULL,
                           .all_groups = s->n * (s->ic / width),
                           .partial = b->scratch.at};
    g.column = g.partial + hp_gpu_groupnorm_partial(s) / (int64_t)sizeof(double);
    g.group = g.column + 2 * s->n * s->ic;
    return g;
}

hp_status hp_cuda_groupnorm_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_groupnorm g = groupnorm_of(d, b);
    HP_CUDA(hp_cuda_groupnorm_forward(&g, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_groupnorm_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_groupnorm g = groupnorm_of(d, b);
    HP_CUDA(hp_cuda_groupnorm_backward(&g, d->cuda->compute));
    return HP_OK;
}

/* --- pooling --- */

static hp_cuda_pool pool_of(const hp_bound *b) {
    return (hp_cuda_pool){.shape = b->shape,
                          .pad_h = b->layer->window.pad_h,
                          .pad_w = b->layer->window.pad_w,
                          .adaptive = b->layer->op == HP_ADAPTPOOL,
                          .count_pad = b->layer->window.count_include_pad};
}

hp_status hp_cuda_maxpool_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_pool p = pool_of(b);
    HP_CUDA(hp_cuda_maxpool(hp_cuda_elements(d, b), b->y, b->save, b->x[0], &p, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_maxpool_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_pool p = pool_of(b);
    HP_CUDA(hp_cuda_maxpool_backward(hp_cuda_elements(d, b), b->dx[0], b->save, b->dy, &p, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_meanpool_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_shape *s = &b->shape;
    const hp_dtype t = hp_cuda_elements(d, b);
    const hp_cuda_pool p = pool_of(b);
    if (hp_gpu_mean_rows(b->layer, s))
        HP_CUDA(hp_cuda_mean_rows(t, b->y, b->x[0], s->n, (int64_t)s->ih * s->iw, s->oc, b->scratch.at,
                                  d->cuda->compute));
    else
        HP_CUDA(hp_cuda_meanpool(t, b->y, b->x[0], &p, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_meanpool_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_pool p = pool_of(b);
    HP_CUDA(hp_cuda_meanpool_backward(hp_cuda_elements(d, b), b->dx[0], b->dy, &p, d->cuda->compute));
    return HP_OK;
}
