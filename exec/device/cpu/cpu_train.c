/* cpu_train.c - the CPU device in float32: binds every compute task to its kernel before the first step.
 */
#include "exec/device/cpu/cpu_train.h"
#include "exec/device/codec/code.h"
#include "exec/device/device_move.h"

#include <stdlib.h>

static hp_cpu_fn *const forward[HP_LAYER_OPS] = {
    [HP_CONV] = hp_cpu_conv_fwd,
    [HP_LINEAR] = hp_cpu_linear_fwd,
    [HP_BN] = hp_cpu_bn_fwd,
    [HP_ACT] = hp_cpu_act_fwd,
    [HP_ADD] = hp_cpu_add_fwd,
    [HP_MAXPOOL] = hp_cpu_maxpool_fwd,
    [HP_AVGPOOL] = hp_cpu_meanpool_fwd,
    [HP_CONCAT] = hp_cpu_concat_fwd,
    [HP_ADAPTPOOL] = hp_cpu_meanpool_fwd,
    [HP_DROPOUT] = hp_cpu_dropout_fwd,
    [HP_CONVT] = hp_cpu_convt_fwd,
    [HP_PAD] = hp_cpu_pad_fwd,
    [HP_LAYERNORM] = hp_cpu_layernorm_fwd,
    [HP_RMSNORM] = hp_cpu_layernorm_fwd,
    [HP_ATTENTION] = hp_cpu_attention_fwd,
    [HP_EMBEDDING] = hp_cpu_embedding_fwd,
    [HP_POSITION] = hp_cpu_position_fwd,
    [HP_CLASSTOKEN] = hp_cpu_classtoken_fwd,
    [HP_CROP] = hp_cpu_crop_fwd,
    [HP_MERGE] = hp_cpu_merge_fwd,
    [HP_SUM] = hp_cpu_sum_fwd,
    [HP_MUL] = hp_cpu_mul_fwd,
    [HP_PRELU] = hp_cpu_prelu_fwd,
    [HP_RESIZE] = hp_cpu_resize_fwd,
    [HP_GATHER] = hp_cpu_gather_fwd,
    [HP_REDUCE] = hp_cpu_reduce_fwd,
    [HP_GROUPNORM] = hp_cpu_groupnorm_fwd,
};
static hp_cpu_fn *const backward[HP_LAYER_OPS] = {
    [HP_CONV] = hp_cpu_conv_bwd,
    [HP_LINEAR] = hp_cpu_linear_bwd,
    [HP_BN] = hp_cpu_bn_bwd,
    [HP_ACT] = hp_cpu_act_bwd,
    [HP_ADD] = hp_cpu_add_bwd,
    [HP_MAXPOOL] = hp_cpu_maxpool_bwd,
    [HP_AVGPOOL] = hp_cpu_meanpool_bwd,
    [HP_CONCAT] = hp_cpu_concat_bwd,
    [HP_ADAPTPOOL] = hp_cpu_meanpool_bwd,
    [HP_DROPOUT] = hp_cpu_dropout_bwd,
    [HP_CONVT] = hp_cpu_convt_bwd,
    [HP_PAD] = hp_cpu_pad_bwd,
    [HP_LAYERNORM] = hp_cpu_layernorm_bwd,
    [HP_RMSNORM] = hp_cpu_layernorm_bwd,
    [HP_ATTENTION] = hp_cpu_attention_bwd,
    [HP_POSITION] = hp_cpu_position_bwd,
    [HP_CLASSTOKEN] = hp_cpu_classtoken_bwd,
    [HP_CROP] = hp_cpu_crop_bwd,
    [HP_MERGE] = hp_cpu_merge_bwd,
    [HP_SUM] = hp_cpu_sum_bwd,
    [HP_MUL] = hp_cpu_mul_bwd,
    [HP_PRELU] = hp_cpu_prelu_bwd,
    [HP_RESIZE] = hp_cpu_resize_bwd,
    [HP_GATHER] = hp_cpu_gather_bwd,
    [HP_REDUCE] = hp_cpu_reduce_bwd,
    [HP_GROUPNORM] = hp_cpu_groupnorm_bwd,
};
static hp_cpu_fn *const backward_weights[HP_LAYER_OPS] = {
    [HP_CONV] = hp_cpu_conv_bwdw,
    [HP_LINEAR] = hp_cpu_linear_bwdw,
    [HP_CONVT] = hp_cpu_convt_bwdw,
    [HP_EMBEDDING] = hp_cpu_embedding_bwdw,
};
static hp_cpu_fn *const stats[HP_LAYER_OPS] = {[HP_BN] = hp_cpu_bn_stats};
static hp_cpu_fn *const backward_stats[HP_LAYER_OPS] = {[HP_BN] = hp_cpu_bn_bstats};
/* Prepares what a layer's tasks need: kernels, tables. */
static hp_status (*const prepare[HP_LAYER_OPS])(hp_device *, const hp_bound *, hp_error *) = {
    [HP_CONV] = hp_cpu_conv_prepare,      [HP_CONVT] = hp_cpu_convt_prepare,
    [HP_MAXPOOL] = hp_cpu_pool_prepare,   [HP_AVGPOOL] = hp_cpu_pool_prepare,
    [HP_ADAPTPOOL] = hp_cpu_pool_prepare, [HP_ATTENTION] = hp_cpu_attention_prepare,
};

hp_cpu_fn *hp_cpu_forward(const hp_layer *l) {
    return forward[l->op];
}

static hp_status copy(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    hp_move_copy(b, d->kernels->point.accum);
    return HP_OK;
}

static hp_status zero(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)s;
    (void)err;
    hp_move_zero(b);
    return HP_OK;
}

static hp_status encode(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)s;
    (void)err;
    hp_code_encode(b);
    return HP_OK;
}

static hp_status decode(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)s;
    (void)err;
    hp_code_decode(b);
    return HP_OK;
}

static hp_status factors(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)err;
    hp_code_factors(b, s);
    return HP_OK;
}

static hp_cpu_fn *function_of(const hp_bound *b) {
    const int op = b->layer ? b->layer->op : HP_INPUT;
    hp_cpu_fn *const table[HP_TASK_OPS] = {
        [HP_TASK_PACK] = hp_cpu_pack,
        [HP_TASK_FWD] = forward[op],
        [HP_TASK_BWD] = backward[op],
        [HP_TASK_LOSS] = hp_cpu_loss,
        [HP_TASK_MAXSUM] = hp_cpu_maxsum,
        [HP_TASK_BWDW] = backward_weights[op],
        [HP_TASK_ACCUM] = hp_cpu_accum,
        [HP_TASK_PART] = hp_cpu_part,
        [HP_TASK_UPDATE] = hp_cpu_update,
        [HP_TASK_FINITE] = hp_cpu_finite,
        [HP_TASK_NORM] = hp_cpu_norm,
        [HP_TASK_STATS] = stats[op],
        [HP_TASK_BSTATS] = backward_stats[op],
        [HP_TASK_COPY] = copy,
        [HP_TASK_ZERO] = zero,
        [HP_TASK_ENCODE] = encode,
        [HP_TASK_DECODE] = decode,
        [HP_TASK_PROJECT] = factors,
        [HP_TASK_FACTOR] = factors,
        [HP_TASK_EXPAND] = factors,
    };
    return table[b->task->op];
}

static bool is_mine(const hp_task *t) {
    return hp_task_infos[t->op].queue == HP_QUEUE_COMPUTE && !hp_task_of_executor(t->op);
}

static hp_status bind_tasks(hp_device *d, hp_error *err) {
    const hp_role *r = d->config.role;
    for (int t = 0; t < r->n_task; t++) {
        if (!is_mine(&r->task[t])) continue;
        hp_bound *b = &d->bound[t];
        *b = hp_bind(&d->config, t);
        d->run[t] = function_of(b);
        if (!d->run[t]) return hp_fail(err, HP_EINTERNAL, "the cpu device has no kernel for task %d", t);
        if (b->layer && prepare[b->layer->op]) HP_TRY(prepare[b->layer->op](d, b, err));
    }
    return HP_OK;
}

static void cpu_close(hp_device *d) {
    if (d->library) hp_onednn_close(d->library);
    hp_arena_free(d->arena);
    free(d);
}

static hp_device *device_new(const hp_device_config *config) {
    hp_device *d = calloc(1, sizeof *d);
    HP_ASSERT(d != NULL);
    d->config = *config;
    d->arena = hp_arena_new();
    d->kernels = hp_kernels_pick()->f32;
    d->bound = HP_NEW(d->arena, hp_bound, config->role->n_task);
    d->run = HP_NEW(d->arena, hp_cpu_fn *, config->role->n_task);
    d->conv = HP_NEW(d->arena, hp_conv_choice, config->role->n_task);
    d->turns = HP_NEW(d->arena, float *, config->graph->n_layer);
    d->windows = HP_NEW(d->arena, hp_pool_windows *, config->role->n_task);
    for (int i = 0; i < 2; i++) d->packed[i] = HP_NEW(d->arena, hp_onednn_kernel *, config->graph->n_layer);
    return d;
}

static hp_status cpu_open(const hp_device_config *config, hp_device **device, hp_error *err) {
    if (config->program->dtype != HP_F32)
        return hp_fail(err, HP_EUNAVAIL,
                       "the cpu device computes in float32; this plan was made for another device: "
                       "plan again with --device cpu");
    HP_TRY(hp_codes_here(config->role, err));
    hp_device *d = device_new(config);
    hp_status status = hp_onednn_open(config->threads > 0 ? config->threads : 1, &d->library, err);
    if (status == HP_OK) status = bind_tasks(d, err);
    if (status != HP_OK) {
        cpu_close(d);
        return status;
    }
    *device = d;
    return HP_OK;
}

static hp_status cpu_run(hp_device *d, int task, const hp_step *step, hp_error *err) {
    return d->run[task](d, &d->bound[task], step, err);
}

const hp_device_ops hp_device_cpu = {
    .name = "cpu",
    .dtype = HP_F32,
    .open = cpu_open,
    .run = cpu_run,
    .close = cpu_close,
    .memory = &hp_memory_host,
};
