/* cuda_infer_device.c - a deployed graph on a GPU: which file prepares a task, and the state they share. */
#include "exec/cuda/infer/cuda_infer_device.h"

#include <stdlib.h>

/* --- constants --- */

hp_infer hp_cuda_infer_of(hp_device *d) {
    return (hp_infer){.config = &d->config, .arena = d->arena};
}

hp_status hp_cuda_upload(hp_device *d, const hp_bound *b, const void *constants, int64_t bytes,
                         hp_error *err) {
    const hp_role *r = d->config.role;
    const int32_t id = r->pack_forward[b->layer_id];
    const int64_t planned = id < 0 ? 0 : r->buffer[id].bytes;
    if (bytes > planned)
        return hp_fail(err, HP_EPLAN,
                       "layer %s needs %lld bytes of constants, the plan has %lld: plan again for cuda",
                       b->layer->name, (long long)bytes, (long long)planned);
    if (!d->packed[b->layer_id] && bytes > 0)
        HP_CUDA(cudaMemcpy(b->pack.forward, constants, (size_t)bytes, cudaMemcpyHostToDevice));
    d->packed[b->layer_id] = true;
    return HP_OK;
}

static hp_status upload_factors(hp_device *d, const hp_infer *in, const hp_bound *b, hp_error *err) {
    const int64_t bytes = hp_infer_factor_count(b) * (int64_t)sizeof(float);
    if (d->packed[b->layer_id]) return hp_cuda_upload(d, b, NULL, bytes, err);
    float *factors = malloc((size_t)bytes);
    HP_ASSERT(factors);
    hp_status s = hp_infer_factors(in, b, factors, err);
    if (s == HP_OK) s = hp_cuda_upload(d, b, factors, bytes, err);
    free(factors);
    return s;
}

hp_status hp_cuda_op_of(hp_device *d, const hp_bound *b, hp_infer_op *op, hp_error *err) {
    const hp_infer in = hp_cuda_infer_of(d);
    const int64_t n = hp_infer_factor_count(b);
    HP_TRY(hp_infer_op_of(&in, b, op, err));
    if (n == 0) return HP_OK;
    HP_TRY(upload_factors(d, &in, b, err));
    op->factor = b->pack.forward;
    op->bias = op->factor + n / 2;
    return HP_OK;
}

/* --- arguments --- */

hp_cuda_act hp_cuda_act_of(const hp_infer_op *o) {
    return (hp_cuda_act){.act = o->act,
                         .clamps = o->clamps,
                         .a = (float)o->act_a,
                         .b = (float)o->act_b,
                         .lo = (float)o->lo,
                         .hi = (float)o->hi};
}

hp_cuda_put hp_cuda_put_of(const hp_qparams *y) {
    return (hp_cuda_put){*y, (float)-y->zero, (float)(255 - y->zero)};
}

hp_cuda_recode hp_cuda_recode_of(const hp_infer_op *o, int k) {
    hp_cuda_recode r = {.there = o->recode[k] || (o->same[k] && o->y.dtype == HP_U8)};
    for (int i = 0; i < 256 && r.there; i++) r.byte[i] = o->recode[k] ? o->recode[k][i] : (uint8_t)i;
    return r;
}

/* --- tasks other than layers --- */

static hp_status as_in_training(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    return hp_cuda_tasks[b->task->op](d, b, l, err);
}

static hp_status run_score(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_scores s = {.logits = b->x[0],
                              .labels = b->step.labels,
                              .rows = b->count,
                              .classes = b->map.in_c[0],
                              .metric = b->step.metric};
    if (b->count > 0) HP_CUDA(hp_cuda_score(&s, d->cuda->compute));
    return HP_OK;
}

static hp_status prepare_score(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    (void)d;
    (void)b;
    (void)err;
    *l = (hp_cuda_launch){.run = run_score, .name = "own"};
    return HP_OK;
}

/* --- the tables of cuda_infer_device.h --- */

hp_cuda_prepare_fn *const hp_cuda_infer_tasks[HP_TASK_OPS] = {
    [HP_TASK_LOSS] = prepare_score, [HP_TASK_COPY] = as_in_training, [HP_TASK_ZERO] = as_in_training};

hp_cuda_prepare_fn *const hp_cuda_infer[HP_LAYER_OPS] = {
    [HP_CONV] = hp_cuda_infer_matrix,        [HP_CONVT] = hp_cuda_infer_matrix,
    [HP_LINEAR] = hp_cuda_infer_matrix,      [HP_BN] = hp_cuda_infer_point,
    [HP_SCALE] = hp_cuda_infer_point,        [HP_ACT] = hp_cuda_infer_point,
    [HP_ADD] = hp_cuda_infer_point,          [HP_MUL] = hp_cuda_infer_point,
    [HP_QUANT] = hp_cuda_infer_point,        [HP_DEQUANT] = hp_cuda_infer_point,
    [HP_CONCAT] = hp_cuda_infer_point,       [HP_MAXPOOL] = hp_cuda_infer_map,
    [HP_AVGPOOL] = hp_cuda_infer_map,        [HP_ADAPTPOOL] = hp_cuda_infer_map,
    [HP_RESIZE] = hp_cuda_infer_map,         [HP_PAD] = hp_cuda_infer_map,
    [HP_SOFTMAX] = hp_cuda_infer_map,        [HP_LAYERNORM] = hp_cuda_infer_trained,
    [HP_RMSNORM] = hp_cuda_infer_trained,    [HP_ATTENTION] = hp_cuda_infer_trained,
    [HP_EMBEDDING] = hp_cuda_infer_trained,  [HP_POSITION] = hp_cuda_infer_trained,
    [HP_CLASSTOKEN] = hp_cuda_infer_trained, [HP_CROP] = hp_cuda_infer_trained,
    [HP_MERGE] = hp_cuda_infer_trained,      [HP_PRELU] = hp_cuda_infer_trained,
    [HP_GROUPNORM] = hp_cuda_infer_trained,  [HP_GATHER] = hp_cuda_infer_trained,
    [HP_REDUCE] = hp_cuda_infer_trained,
};
