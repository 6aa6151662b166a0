/* device.c - a deployed graph on a GPU: which file prepares a task, and what they share. */
#include "exec/cuda/infer/device.h"

#include <stdlib.h>
#include <string.h>

/* --- preparing as the processor does --- */

hp_infer hp_cuda_infer_of(hp_device *d) {
    return (hp_infer){
        .config = &d->config, .constants = d->config.constants, .arena = d->arena, .packed = d->packed};
}

static int64_t pack_bytes(const hp_device *d, const hp_bound *b) {
    const hp_role *r = d->config.role;
    const int32_t id = r->pack_forward[b->layer_id];
    return id < 0 ? 0 : r->buffer[id].bytes;
}

hp_status hp_cuda_upload(hp_device *d, const hp_bound *b, const void *constants, int64_t bytes,
                         hp_error *err) {
    const int64_t planned = pack_bytes(d, b);
    if (bytes > planned)
        return hp_fail(err, HP_EPLAN,
                       "layer %s needs %lld bytes of constants, the plan has %lld: plan again for cuda",
                       b->layer->name, (long long)bytes, (long long)planned);
    if (!d->packed[b->layer_id] && bytes > 0)
        HP_CUDA(cudaMemcpy(b->pack_forward, constants, (size_t)bytes, cudaMemcpyHostToDevice));
    d->packed[b->layer_id] = true;
    return HP_OK;
}

/* Factors that lie in the host's copy of the pack are those at the same place of the device's. */
static const float *moved(const float *p, const unsigned char *host, int64_t bytes, void *device) {
    const ptrdiff_t at = (const unsigned char *)p - host;
    return p && at >= 0 && at < bytes ? (const float *)(void *)((unsigned char *)device + at) : p;
}

static hp_status prepare_on_host(hp_device *d, const hp_bound *b, unsigned char *pack, bool *packed,
                                 hp_infer_op **op, hp_error *err) {
    const int64_t bytes = pack_bytes(d, b);
    hp_infer in = hp_cuda_infer_of(d);
    hp_bound host = *b;
    hp_infer_kernel k = {0};
    in.packed = packed;
    packed[b->layer_id] = d->packed[b->layer_id];
    host.pack_forward = pack;
    HP_TRY(hp_infer_cpu[b->layer->op](&in, &host, &k, err));
    *op = k.self; /* the first member of what it prepared */
    HP_TRY(hp_cuda_upload(d, b, pack, bytes, err));
    (*op)->factor = moved((*op)->factor, pack, bytes, b->pack_forward);
    (*op)->bias = moved((*op)->bias, pack, bytes, b->pack_forward);
    return HP_OK;
}

hp_status hp_cuda_prepared(hp_device *d, const hp_bound *b, const hp_infer_op **op, hp_error *err) {
    unsigned char *pack = calloc(1, (size_t)pack_bytes(d, b) + 1);
    bool *packed = calloc((size_t)d->config.graph->n_layer, sizeof *packed);
    hp_infer_op *o = NULL;
    HP_ASSERT(pack && packed);
    const hp_status s = prepare_on_host(d, b, pack, packed, &o, err);
    *op = o;
    free(packed);
    free(pack);
    return s;
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

/* --- tasks that compute no layer --- */

static hp_status as_in_training(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    return hp_cuda_tasks[b->task->op](d, b, l, err);
}

static hp_status run_score(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_scores s = {
        .logits = b->x[0], .labels = b->labels, .rows = b->count, .classes = b->in_c[0], .metric = b->metric};
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

/* --- the tables of device.h --- */

hp_cuda_prepare_fn *const hp_cuda_infer_tasks[HP_TASK_OPS] = {
    [HP_TASK_LOSS] = prepare_score, [HP_TASK_COPY] = as_in_training, [HP_TASK_ZERO] = as_in_training};

hp_cuda_prepare_fn *const hp_cuda_infer[HP_LAYER_OPS] = {
    [HP_CONV] = hp_cuda_infer_matrix,   [HP_CONVT] = hp_cuda_infer_matrix,
    [HP_LINEAR] = hp_cuda_infer_matrix, [HP_BN] = hp_cuda_infer_point,
    [HP_SCALE] = hp_cuda_infer_point,   [HP_ACT] = hp_cuda_infer_point,
    [HP_ADD] = hp_cuda_infer_point,     [HP_MUL] = hp_cuda_infer_point,
    [HP_QUANT] = hp_cuda_infer_point,   [HP_DEQUANT] = hp_cuda_infer_point,
    [HP_CONCAT] = hp_cuda_infer_point,  [HP_MAXPOOL] = hp_cuda_infer_map,
    [HP_AVGPOOL] = hp_cuda_infer_map,   [HP_ADAPTPOOL] = hp_cuda_infer_map,
    [HP_RESIZE] = hp_cuda_infer_map,    [HP_PAD] = hp_cuda_infer_map,
    [HP_SOFTMAX] = hp_cuda_infer_map,
};
