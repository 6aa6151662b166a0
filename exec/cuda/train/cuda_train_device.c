/* cuda_train_device.c - training on a GPU: selects each task's launch. Libraries compute convolutions and
 * dense layers, own kernels the rest. */
#include "exec/cuda/train/cuda_train_device.h"

static hp_cuda_launch_fn *const layers[HP_TASK_OPS][HP_LAYER_OPS] = {
    [HP_TASK_FWD] = {[HP_BN] = hp_cuda_norm_fwd,
                     [HP_ACT] = hp_cuda_act_fwd,
                     [HP_ADD] = hp_cuda_add_fwd,
                     [HP_MAXPOOL] = hp_cuda_maxpool_fwd,
                     [HP_AVGPOOL] = hp_cuda_meanpool_fwd,
                     [HP_ADAPTPOOL] = hp_cuda_meanpool_fwd,
                     [HP_CONCAT] = hp_cuda_concat_fwd,
                     [HP_DROPOUT] = hp_cuda_dropout_fwd,
                     [HP_PAD] = hp_cuda_pad_fwd,
                     [HP_LAYERNORM] = hp_cuda_layernorm_fwd,
                     [HP_RMSNORM] = hp_cuda_layernorm_fwd,
                     [HP_ATTENTION] = hp_cuda_attention_fwd,
                     [HP_EMBEDDING] = hp_cuda_embedding_fwd,
                     [HP_POSITION] = hp_cuda_position_fwd,
                     [HP_CLASSTOKEN] = hp_cuda_classtoken_fwd,
                     [HP_CROP] = hp_cuda_crop_fwd,
                     [HP_MERGE] = hp_cuda_merge_fwd,
                     [HP_SUM] = hp_cuda_sum_fwd,
                     [HP_MUL] = hp_cuda_mul_fwd,
                     [HP_PRELU] = hp_cuda_prelu_fwd,
                     [HP_RESIZE] = hp_cuda_resize_fwd,
                     [HP_GROUPNORM] = hp_cuda_groupnorm_fwd,
                     [HP_GATHER] = hp_cuda_gather_fwd,
                     [HP_REDUCE] = hp_cuda_reduce_fwd},
    [HP_TASK_BWD] = {[HP_BN] = hp_cuda_norm_bwd,
                     [HP_ACT] = hp_cuda_act_bwd,
                     [HP_ADD] = hp_cuda_add_bwd,
                     [HP_MAXPOOL] = hp_cuda_maxpool_bwd,
                     [HP_AVGPOOL] = hp_cuda_meanpool_bwd,
                     [HP_ADAPTPOOL] = hp_cuda_meanpool_bwd,
                     [HP_CONCAT] = hp_cuda_concat_bwd,
                     [HP_DROPOUT] = hp_cuda_dropout_bwd,
                     [HP_PAD] = hp_cuda_pad_bwd,
                     [HP_LAYERNORM] = hp_cuda_layernorm_bwd,
                     [HP_RMSNORM] = hp_cuda_layernorm_bwd,
                     [HP_ATTENTION] = hp_cuda_attention_bwd,
                     [HP_POSITION] = hp_cuda_position_bwd,
                     [HP_CLASSTOKEN] = hp_cuda_classtoken_bwd,
                     [HP_CROP] = hp_cuda_crop_bwd,
                     [HP_MERGE] = hp_cuda_merge_bwd,
                     [HP_SUM] = hp_cuda_sum_bwd,
                     [HP_MUL] = hp_cuda_mul_bwd,
                     [HP_PRELU] = hp_cuda_prelu_bwd,
                     [HP_RESIZE] = hp_cuda_resize_bwd,
                     [HP_GROUPNORM] = hp_cuda_groupnorm_bwd,
                     [HP_GATHER] = hp_cuda_gather_bwd,
                     [HP_REDUCE] = hp_cuda_reduce_bwd},
    [HP_TASK_BWDW] = {[HP_EMBEDDING] = hp_cuda_embedding_bwdw},
    [HP_TASK_STATS] = {[HP_BN] = hp_cuda_norm_sums},
    [HP_TASK_BSTATS] = {[HP_BN] = hp_cuda_norm_bwd_sums},
};
static hp_cuda_launch_fn *const others[HP_TASK_OPS] = {
    [HP_TASK_MAXSUM] = hp_cuda_class_sums,
    [HP_TASK_LOSS] = hp_cuda_loss_rows,
    [HP_TASK_ACCUM] = hp_cuda_accumulate,
    [HP_TASK_COPY] = hp_cuda_copy_boxes,
    [HP_TASK_ZERO] = hp_cuda_zero,
    [HP_TASK_PART] = hp_cuda_copy_part,
    [HP_TASK_UPDATE] = hp_cuda_update_step,
    [HP_TASK_FINITE] = hp_cuda_look_for_overflow,
    [HP_TASK_NORM] = hp_cuda_norm_of_gradients,
};

hp_status hp_cuda_check_scratch(const hp_bound *b, int64_t bytes, hp_error *err) {
    if (bytes <= b->scratch.bytes) return HP_OK;
    return hp_fail(err, HP_EPLAN, "%s needs %lld bytes of scratch, the plan has %lld: plan again for cuda",
                   b->layer ? b->layer->name : hp_task_infos[b->task->op].name, (long long)bytes,
                   (long long)b->scratch.bytes);
}

/* A kernel takes one element type for everything that a layer reads and writes. */
static hp_status check_elements(const hp_device *d, const hp_bound *b, hp_error *err) {
    const hp_dtype real = (hp_dtype)d->config.program->dtype, t = hp_cuda_elements(d, b);
    bool equal = t == HP_F32 || t == HP_BF16 || t == HP_F16;
    for (int i = 0; i < b->n_in && b->layer->op != HP_EMBEDDING; i++) /* which reads ids */
        equal = equal && hp_tensor_dtype(&d->config.graph->tensor[b->layer->in[i]], real) == t;
    if (equal) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL, "the cuda device trains in f32, bf16 or f16; layer %s is in %s",
                   b->layer->name, t == real ? hp_dtype_names[t] : "several types");
}

static hp_status check_window(const hp_bound *b, hp_error *err) {
    if (b->layer->op != HP_MAXPOOL || b->shape.kh * b->shape.kw <= 256) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL,
                   "layer %s: a %dx%d maximum has more than 256 elements per window: use a smaller one",
                   b->layer->name, b->shape.kh, b->shape.kw);
}

/* Group norm's kernels count samples times channels in 32 bits. */
static hp_status check_columns(const hp_bound *b, hp_error *err) {
    if (b->layer->op != HP_GROUPNORM || b->shape.n * b->shape.ic <= INT32_MAX) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL,
                   "layer %s: %lld samples of %d channels are more than %d: use fewer at a time",
                   b->layer->name, (long long)b->shape.n, b->shape.ic, INT32_MAX);
}

static hp_status prepare_layer(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    HP_TRY(check_elements(d, b, err));
    HP_TRY(check_window(b, err));
    HP_TRY(check_columns(b, err));
    HP_TRY(hp_cuda_check_scratch(b, hp_cuda_own_scratch(d, b), err));
    *l = (hp_cuda_launch){.run = layers[b->task->op][b->layer->op], .name = "own"};
    return HP_OK;
}

static hp_status prepare_attention(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    const int32_t channels = hp_head_channels(b->graph, b->layer);
    const float *angles = NULL;
    if (channels > HP_GPU_HEAD_CHANNELS)
        return hp_fail(err, HP_EUNAVAIL,
                       "layer %s: heads of %d channels, the cuda device takes at most %d: use more heads",
                       b->layer->name, channels, HP_GPU_HEAD_CHANNELS);
    HP_TRY(prepare_layer(d, b, l, err));
    HP_TRY(hp_cuda_attention_angles(d, b, &angles, err));
    l->self = (void *)(uintptr_t)angles;
    return HP_OK;
}

static hp_status prepare_other(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    (void)d;
    if (b->task->op == HP_TASK_LOSS || b->task->op == HP_TASK_NORM)
        HP_TRY(hp_cuda_check_scratch(b, hp_gpu_loss_bytes(), err));
    *l = (hp_cuda_launch){.run = others[b->task->op], .name = "own"};
    return HP_OK;
}

/* --- the tables of cuda_train_device.h --- */

hp_cuda_prepare_fn *const hp_cuda_tasks[HP_TASK_OPS] = {
    [HP_TASK_PACK] = hp_cuda_prepare_pack, [HP_TASK_LOSS] = prepare_other, [HP_TASK_ACCUM] = prepare_other,
    [HP_TASK_COPY] = prepare_other,        [HP_TASK_ZERO] = prepare_other, [HP_TASK_UPDATE] = prepare_other,
    [HP_TASK_FINITE] = prepare_other,      [HP_TASK_PART] = prepare_other, [HP_TASK_NORM] = prepare_other,
    [HP_TASK_MAXSUM] = prepare_other,
};
hp_cuda_prepare_fn *const hp_cuda_forward[HP_LAYER_OPS] = {
    [HP_CONV] = hp_cuda_prepare_conv, [HP_CONVT] = hp_cuda_prepare_conv, [HP_LINEAR] = hp_cuda_prepare_linear,
    [HP_BN] = prepare_layer,          [HP_ACT] = prepare_layer,          [HP_ADD] = prepare_layer,
    [HP_MAXPOOL] = prepare_layer,     [HP_AVGPOOL] = prepare_layer,      [HP_ADAPTPOOL] = prepare_layer,
    [HP_CONCAT] = prepare_layer,      [HP_DROPOUT] = prepare_layer,      [HP_PAD] = prepare_layer,
    [HP_LAYERNORM] = prepare_layer,   [HP_RMSNORM] = prepare_layer,      [HP_ATTENTION] = prepare_attention,
    [HP_EMBEDDING] = prepare_layer,   [HP_POSITION] = prepare_layer,     [HP_CLASSTOKEN] = prepare_layer,
    [HP_CROP] = prepare_layer,        [HP_MERGE] = prepare_layer,        [HP_SUM] = prepare_layer,
    [HP_MUL] = prepare_layer,         [HP_PRELU] = prepare_layer,        [HP_RESIZE] = prepare_layer,
    [HP_GROUPNORM] = prepare_layer,   [HP_GATHER] = prepare_layer,       [HP_REDUCE] = prepare_layer,
};
hp_cuda_prepare_fn *const hp_cuda_backward[HP_LAYER_OPS] = {
    [HP_CONV] = hp_cuda_prepare_conv, [HP_CONVT] = hp_cuda_prepare_conv, [HP_LINEAR] = hp_cuda_prepare_linear,
    [HP_BN] = prepare_layer,          [HP_ACT] = prepare_layer,          [HP_ADD] = prepare_layer,
    [HP_MAXPOOL] = prepare_layer,     [HP_AVGPOOL] = prepare_layer,      [HP_ADAPTPOOL] = prepare_layer,
    [HP_CONCAT] = prepare_layer,      [HP_DROPOUT] = prepare_layer,      [HP_PAD] = prepare_layer,
    [HP_LAYERNORM] = prepare_layer,   [HP_RMSNORM] = prepare_layer,      [HP_ATTENTION] = prepare_attention,
    [HP_POSITION] = prepare_layer,    [HP_CLASSTOKEN] = prepare_layer,   [HP_CROP] = prepare_layer,
    [HP_MERGE] = prepare_layer,       [HP_SUM] = prepare_layer,          [HP_MUL] = prepare_layer,
    [HP_PRELU] = prepare_layer,       [HP_RESIZE] = prepare_layer,       [HP_GROUPNORM] = prepare_layer,
    [HP_GATHER] = prepare_layer,      [HP_REDUCE] = prepare_layer,
};
hp_cuda_prepare_fn *const hp_cuda_backward_weights[HP_LAYER_OPS] = {
    [HP_CONV] = hp_cuda_prepare_conv,
    [HP_CONVT] = hp_cuda_prepare_conv,
    [HP_LINEAR] = hp_cuda_prepare_linear,
    [HP_EMBEDDING] = prepare_layer,
};
hp_cuda_prepare_fn *const hp_cuda_stats[HP_LAYER_OPS] = {[HP_BN] = prepare_layer};
hp_cuda_prepare_fn *const hp_cuda_backward_stats[HP_LAYER_OPS] = {[HP_BN] = prepare_layer};
