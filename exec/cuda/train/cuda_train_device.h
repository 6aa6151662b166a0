/* cuda_train_device.h - shared by the files of training on a GPU. Only files of
 * exec/cuda/train include it. */
#ifndef HP_CUDA_TRAIN_DEVICE_H
#define HP_CUDA_TRAIN_DEVICE_H

#include "exec/cuda/train/cuda_train_kernels.h"

/* Element type of the layer's activations and their gradients. */
static inline hp_dtype hp_cuda_elements(const hp_device *d, const hp_bound *b) {
    return hp_tensor_dtype(&d->config.graph->tensor[b->layer->out], (hp_dtype)d->config.program->dtype);
}

/* Element type of operand `k` of a task without a layer. */
static inline hp_dtype hp_cuda_operand_elements(const hp_device *d, const hp_bound *b, int k) {
    const hp_role *r = d->config.role;
    return (hp_dtype)r->buffer[r->operand[b->task->operand + k]].dtype;
}

static inline int64_t hp_cuda_pixels(const hp_shape *s) {
    return s->n * s->oh * s->ow;
}

/* Scratch of own kernels, in bytes. It comes first; the libraries' workspace is the rest. Errors: HP_EPLAN
 * (the plan has less). */
static inline int64_t hp_cuda_own_scratch(const hp_device *d, const hp_bound *b) {
    return hp_gpu_scratch_bytes(d->config.graph, b->layer_id, (hp_task_op)b->task->op, &b->shape);
}
hp_status hp_cuda_check_scratch(const hp_bound *b, int64_t bytes, hp_error *err);
/* Zeros. */
hp_status hp_cuda_clear(hp_device *d, void *at, int64_t bytes, hp_error *err);

hp_cuda_prepare_fn hp_cuda_prepare_pack, hp_cuda_prepare_conv, hp_cuda_prepare_linear;
hp_cuda_launch_fn hp_cuda_norm_fwd, hp_cuda_norm_bwd, hp_cuda_norm_sums, hp_cuda_norm_bwd_sums;
hp_cuda_launch_fn hp_cuda_maxpool_fwd, hp_cuda_maxpool_bwd, hp_cuda_meanpool_fwd, hp_cuda_meanpool_bwd;
hp_cuda_launch_fn hp_cuda_act_fwd, hp_cuda_act_bwd, hp_cuda_add_fwd, hp_cuda_add_bwd;
hp_cuda_launch_fn hp_cuda_dropout_fwd, hp_cuda_dropout_bwd;
hp_cuda_launch_fn hp_cuda_concat_fwd, hp_cuda_concat_bwd, hp_cuda_pad_fwd, hp_cuda_pad_bwd;
hp_cuda_launch_fn hp_cuda_layernorm_fwd, hp_cuda_layernorm_bwd, hp_cuda_attention_fwd, hp_cuda_attention_bwd;
hp_cuda_launch_fn hp_cuda_embedding_fwd, hp_cuda_embedding_bwdw, hp_cuda_position_fwd, hp_cuda_position_bwd;
hp_cuda_launch_fn hp_cuda_classtoken_fwd, hp_cuda_classtoken_bwd, hp_cuda_crop_fwd, hp_cuda_crop_bwd;
hp_cuda_launch_fn hp_cuda_mul_fwd, hp_cuda_mul_bwd, hp_cuda_prelu_fwd, hp_cuda_prelu_bwd, hp_cuda_resize_fwd,
    hp_cuda_resize_bwd;
hp_cuda_launch_fn hp_cuda_groupnorm_fwd, hp_cuda_groupnorm_bwd, hp_cuda_gather_fwd, hp_cuda_gather_bwd,
    hp_cuda_reduce_fwd, hp_cuda_reduce_bwd;
hp_cuda_launch_fn hp_cuda_merge_fwd, hp_cuda_merge_bwd, hp_cuda_sum_fwd, hp_cuda_sum_bwd;
hp_cuda_launch_fn hp_cuda_copy_boxes, hp_cuda_zero, hp_cuda_accumulate, hp_cuda_copy_part,
    hp_cuda_update_step, hp_cuda_norm_of_gradients, hp_cuda_loss_rows, hp_cuda_class_sums;
hp_cuda_launch_fn hp_cuda_look_for_overflow;

/* The table of angles of a layer with rotary positions, in GPU memory until the device closes; else NULL.
 * Errors: as cudaMalloc's. */
hp_status hp_cuda_attention_angles(hp_device *d, const hp_bound *b, const float **there, hp_error *err);

#endif
