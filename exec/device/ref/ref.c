/* ref.c - the reference device: naive C in float64, the oracle every other device is held against. */
#include "exec/device/ref/ref.h"
#include "exec/device/codec/code.h"
#include "exec/device/device_move.h"
#include "networks/graph/precision.h"

#include <stdlib.h>

struct hp_device {
    hp_device_config config;
};

static hp_ref_fn *const forward[HP_LAYER_OPS] = {
    [HP_CONV] = hp_ref_conv_fwd,
    [HP_LINEAR] = hp_ref_conv_fwd,
    [HP_BN] = hp_ref_bn_fwd,
    [HP_ACT] = hp_ref_act_fwd,
    [HP_ADD] = hp_ref_add_fwd,
    [HP_MAXPOOL] = hp_ref_maxpool_fwd,
    [HP_AVGPOOL] = hp_ref_avgpool_fwd,
    [HP_CONCAT] = hp_ref_concat_fwd,
    [HP_ADAPTPOOL] = hp_ref_adaptpool_fwd,
    [HP_DROPOUT] = hp_ref_dropout_fwd,
    [HP_CONVT] = hp_ref_convt_fwd,
    [HP_PAD] = hp_ref_pad_fwd,
    [HP_LAYERNORM] = hp_ref_layernorm_fwd,
    [HP_RMSNORM] = hp_ref_layernorm_fwd,
    [HP_ATTENTION] = hp_ref_attention_fwd,
    [HP_EMBEDDING] = hp_ref_embedding_fwd,
    [HP_POSITION] = hp_ref_position_fwd,
    [HP_CLASSTOKEN] = hp_ref_classtoken_fwd,
    [HP_CROP] = hp_ref_crop_fwd,
    [HP_MERGE] = hp_ref_merge_fwd,
    [HP_SUM] = hp_ref_sum_fwd,
    [HP_MUL] = hp_ref_mul_fwd,
    [HP_PRELU] = hp_ref_prelu_fwd,
    [HP_RESIZE] = hp_ref_resize_fwd,
    [HP_GATHER] = hp_ref_gather_fwd,
    [HP_REDUCE] = hp_ref_reduce_fwd,
    [HP_GROUPNORM] = hp_ref_groupnorm_fwd,
};
static hp_ref_fn *const backward[HP_LAYER_OPS] = {
    [HP_CONV] = hp_ref_conv_bwd,
    [HP_LINEAR] = hp_ref_conv_bwd,
    [HP_BN] = hp_ref_bn_bwd,
    [HP_ACT] = hp_ref_act_bwd,
    [HP_ADD] = hp_ref_add_bwd,
    [HP_MAXPOOL] = hp_ref_maxpool_bwd,
    [HP_AVGPOOL] = hp_ref_avgpool_bwd,
    [HP_CONCAT] = hp_ref_concat_bwd,
    [HP_ADAPTPOOL] = hp_ref_adaptpool_bwd,
    [HP_DROPOUT] = hp_ref_dropout_bwd,
    [HP_CONVT] = hp_ref_convt_bwd,
    [HP_PAD] = hp_ref_pad_bwd,
    [HP_LAYERNORM] = hp_ref_layernorm_bwd,
    [HP_RMSNORM] = hp_ref_layernorm_bwd,
    [HP_ATTENTION] = hp_ref_attention_bwd,
    [HP_POSITION] = hp_ref_position_bwd,
    [HP_CLASSTOKEN] = hp_ref_classtoken_bwd,
    [HP_CROP] = hp_ref_crop_bwd,
    [HP_MERGE] = hp_ref_merge_bwd,
    [HP_SUM] = hp_ref_sum_bwd,
    [HP_MUL] = hp_ref_mul_bwd,
    [HP_PRELU] = hp_ref_prelu_bwd,
    [HP_RESIZE] = hp_ref_resize_bwd,
    [HP_GATHER] = hp_ref_gather_bwd,
    [HP_REDUCE] = hp_ref_reduce_bwd,
    [HP_GROUPNORM] = hp_ref_groupnorm_bwd,
};
static hp_ref_fn *const backward_weights[HP_LAYER_OPS] = {
    [HP_CONV] = hp_ref_conv_bwdw,
    [HP_LINEAR] = hp_ref_conv_bwdw,
    [HP_CONVT] = hp_ref_convt_bwdw,
    [HP_EMBEDDING] = hp_ref_embedding_bwdw,
};
static hp_ref_fn *const stats[HP_LAYER_OPS] = {[HP_BN] = hp_ref_bn_stats};
static hp_ref_fn *const backward_stats[HP_LAYER_OPS] = {[HP_BN] = hp_ref_bn_bstats};

hp_ref_fn *hp_ref_forward(const hp_layer *l) {
    return forward[l->op];
}

/* The weights stay canonical here: nothing to pack. */
static void nothing(const hp_bound *b, const hp_step *s) {
    (void)b;
    (void)s;
}

static void copy(const hp_bound *b, const hp_step *s) {
    (void)s;
    hp_move_copy(b, NULL);
}

static void zero(const hp_bound *b, const hp_step *s) {
    (void)s;
    hp_move_zero(b);
}

static void encode(const hp_bound *b, const hp_step *s) {
    (void)s;
    hp_code_encode(b);
}

static void decode(const hp_bound *b, const hp_step *s) {
    (void)s;
    hp_code_decode(b);
}

static void factors(const hp_bound *b, const hp_step *s) {
    hp_code_factors(b, s);
}

static hp_ref_fn *function_of(const hp_bound *b) {
    const int op = b->layer ? b->layer->op : HP_INPUT;
    hp_ref_fn *const table[HP_TASK_OPS] = {
        [HP_TASK_PACK] = nothing,
        [HP_TASK_FWD] = forward[op],
        [HP_TASK_BWD] = backward[op],
        [HP_TASK_LOSS] = hp_ref_loss,
        [HP_TASK_MAXSUM] = hp_ref_maxsum,
        [HP_TASK_BWDW] = backward_weights[op],
        [HP_TASK_ACCUM] = hp_ref_accum,
        [HP_TASK_PART] = hp_ref_part,
        [HP_TASK_UPDATE] = hp_ref_update,
        [HP_TASK_STATS] = stats[op],
        [HP_TASK_BSTATS] = backward_stats[op],
        [HP_TASK_COPY] = copy,
        [HP_TASK_ZERO] = zero,
        [HP_TASK_FINITE] = hp_ref_finite,
        [HP_TASK_NORM] = hp_ref_norm,
        [HP_TASK_ENCODE] = encode,
        [HP_TASK_DECODE] = decode,
        [HP_TASK_PROJECT] = factors,
        [HP_TASK_FACTOR] = factors,
        [HP_TASK_EXPAND] = factors,
    };
    return table[b->task->op];
}

static hp_status ref_open(const hp_device_config *config, hp_device **device, hp_error *err) {
    if (config->program->dtype != HP_F64)
        return hp_fail(err, HP_EUNAVAIL,
                       "the ref device computes in float64; this plan was made for another device: "
                       "plan again with --device ref");
    HP_TRY(hp_codes_here(config->role, err));
    hp_device *d = calloc(1, sizeof *d);
    HP_ASSERT(d != NULL);
    d->config = *config;
    *device = d;
    return HP_OK;
}

static hp_status ref_run(hp_device *d, int task, const hp_step *step, hp_error *err) {
    const hp_bound b = hp_bind(&d->config, task);
    hp_ref_fn *f = function_of(&b);
    if (!f) return hp_fail(err, HP_EINTERNAL, "the ref device has no loop for task %d", task);
    if (d->config.graph->prec == HP_PREC_FP32)
        f(&b, step);
    else
        hp_ref_run_rounded(&d->config, &b, f, step);
    return HP_OK;
}

static void ref_close(hp_device *d) {
    free(d);
}

const hp_device_ops hp_device_ref = {
    .name = "ref",
    .dtype = HP_F64,
    .open = ref_open,
    .run = ref_run,
    .close = ref_close,
    .memory = &hp_memory_host,
};
