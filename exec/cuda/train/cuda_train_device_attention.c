/* cuda_train_device_attention.c - attention tasks: the arguments of their kernels, and a table of angles
 * for rotary positions. */
#include "exec/cuda/train/cuda_train_device.h"
#include "exec/device/rotary.h"
#include "base/alloc.h"
#include "networks/graph/precision.h"
#include "plan/memory/memory_device.h"
#include "plan/memory/gpu_scratch.h"

#include <math.h>
#include <stdlib.h>

static hp_cuda_heads heads_of(void *at, const hp_box *box) {
    return (hp_cuda_heads){.at = at,
                           .y0 = box->lo[HP_AXIS_H],
                           .x0 = box->lo[HP_AXIS_W],
                           .h = hp_box_len(box, HP_AXIS_H),
                           .w = hp_box_len(box, HP_AXIS_W),
                           .c0 = box->lo[HP_AXIS_C],
                           .c = hp_box_len(box, HP_AXIS_C)};
}

static int32_t larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

/* Without windows the whole map counts as one. */
static void set_windows(hp_cuda_attend *a, const hp_bound *b) {
    const hp_layer *l = b->layer;
    const hp_tensor *keys = &b->graph->tensor[l->in[1]];
    const bool windowed = hp_layer_is_windowed(l);
    a->window.map_h = keys->h;
    a->window.map_w = b->shape.full.ow;
    a->window.h = windowed ? l->window.kh : larger(keys->h, b->shape.full.oh);
    a->window.w = windowed ? l->window.kw : larger(keys->w, b->shape.full.ow);
    a->window.shift_h = windowed ? l->window.pad_h : 0;
    a->window.shift_w = windowed ? l->window.pad_w : 0;
}

/* Inference in 16 bits keeps attention's inputs in float32 and rounds them as it rounds all factors. */
static hp_dtype factors_of(const hp_device *d, const hp_bound *b) {
    const int32_t prec = d->config.graph->prec;
    if (!b->graph->deployed) return hp_cuda_elements(d, b);
    return prec == HP_PREC_BF16 ? HP_BF16 : prec == HP_PREC_FP16 ? HP_F16 : hp_cuda_elements(d, b);
}

static hp_cuda_attend attend_of(const hp_device *d, const hp_bound *b, const float *turn) {
    const hp_layer *l = b->layer;
    const int32_t channels = hp_head_channels(b->graph, l);
    hp_cuda_attend a = {.dtype = hp_cuda_elements(d, b),
                        .factors = factors_of(d, b),
                        .samples = b->shape.n,
                        .channels = channels,
                        .first_head = b->shape.oc0 / channels,
                        .heads = (int32_t)hp_attention_heads(b->graph, b->layer_id, &b->shape),
                        .group = l->groups / l->attention.kv_heads,
                        .q = heads_of(b->x[0], &b->map.in_box[0]),
                        .k = heads_of(b->x[1], &b->map.in_box[1]),
                        .v = heads_of(b->x[2], &b->map.in_box[1]),
                        .y = heads_of(b->y, &b->map.out_box),
                        .dy = heads_of(b->dy, &b->map.out_box),
                        .dq = heads_of(b->dx[0], &b->map.in_box[0]),
                        .dk = heads_of(b->dx[1], &b->map.in_box[1]),
                        .dv = heads_of(b->dx[2], &b->map.in_box[1]),
                        .causal = l->attention.causal,
                        .add = b->task->flags & HP_FLAG_ADD,
                        .scale = (float)(1 / sqrt(channels)),
                        .bias = l->n_param > 0 ? b->param[0] : NULL,
                        .dbias = l->n_param > 0 ? b->grad[0] : NULL,
                        .turn = turn,
                        .log_sum = b->save,
                        .product = b->scratch.at,
                        .partial = (double *)((char *)b->scratch.at +
                                              hp_gpu_attend_products(b->graph, b->layer_id, &b->shape))};
    set_windows(&a, b);
    return a;
}

hp_status hp_cuda_attention_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const hp_cuda_attend a = attend_of(d, b, self);
    HP_CUDA(hp_cuda_attend_forward(&a, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_attention_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const hp_cuda_attend a = attend_of(d, b, self);
    HP_CUDA(hp_cuda_attend_backward(&a, d->cuda->compute));
    return HP_OK;
}

/* --- rotary positions --- */

hp_status hp_cuda_attention_angles(hp_device *d, const hp_bound *b, const float **there, hp_error *err) {
    const int64_t n = hp_rotary_elems(b);
    float **at = &d->angles[b->layer_id];
    *there = *at;
    if (n == 0 || *at) return HP_OK;
    const size_t bytes = sizeof(float) * (size_t)n;
    float *turn = hp_zeroed((size_t)n, sizeof *turn);
    hp_rotary_fill(b, turn);
    hp_status s = hp_cuda_checked(cudaMalloc((void **)at, bytes), "cudaMalloc", err);
    if (s == HP_OK)
        s = hp_cuda_checked(cudaMemcpy(*at, turn, bytes, cudaMemcpyHostToDevice), "cudaMemcpy", err);
    free(turn);
    *there = *at;
    return s;
}
