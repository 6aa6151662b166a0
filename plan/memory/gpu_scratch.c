/* gpu_scratch.c - scratch of the GPU's own kernels: partial sums, and a weight gradient before it is
 * converted to the canonical layout. */
#include "plan/memory/gpu_scratch.h"

#include "networks/graph/layer.h"
#include "plan/memory/column_sums.h"
#include "plan/memory/memory_device.h"
#include "base/round.h"

enum { LINE = 64 }; /* bytes: keeps the libraries' workspace aligned */

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

hp_gpu_weights hp_gpu_weights_of(const hp_layer *l, const hp_shape *s) {
    const int32_t groups = s->groups > 0 ? s->groups : 1;                      /* 0 if it has no channels */
    if (l->tp == (int32_t)HP_TP_ROW) return (hp_gpu_weights){1, s->oc, s->ic}; /* canonical: (I, O) */
    if (l->op == HP_LINEAR) return (hp_gpu_weights){s->oc, s->ih * s->iw, s->ic};
    if (l->op == HP_CONVT) return (hp_gpu_weights){s->ic, s->kh * s->kw, s->oc / groups};
    return (hp_gpu_weights){s->oc, s->kh * s->kw, s->ic / groups};
}

bool hp_gpu_mean_rows(const hp_layer *l, const hp_shape *s) {
    return l->op == HP_ADAPTPOOL && s->oh == 1 && s->ow == 1 && s->full.oh == 1 && s->full.ow == 1 &&
           (int64_t)s->ih * s->iw >= HP_GPU_MEAN_ROWS;
}

/* The weight gradient in float32, then reused for partial sums of the bias gradient. */
static int64_t gradient_bytes(const hp_layer *l, const hp_shape *s) {
    const int64_t bias = l->n_param > 1 ? hp_column_sums_bytes(s->n * s->oh * s->ow, s->oc) : 0;
    return larger(4 * hp_gpu_weight_elems(l, s), bias);
}

int64_t hp_gpu_attend_products(const hp_graph *g, int layer, const hp_shape *s) {
    return hp_round_up(4 * s->n * s->oh * s->ow * hp_attention_heads(g, layer, s), LINE);
}

static int64_t attend_bytes(const hp_graph *g, int layer, const hp_shape *s) {
    const hp_layer *l = &g->layer[layer];
    const int64_t places = l->n_param > 0 ? (2 * (int64_t)l->window.kh - 1) * (2 * l->window.kw - 1) : 0;
    return hp_gpu_attend_products(g, layer, s) +
           hp_round_up(8 * HP_GPU_BIAS_PARTS * places * hp_attention_heads(g, layer, s), LINE);
}

int64_t hp_gpu_groupnorm_partial(const hp_shape *s) {
    return larger(hp_column_sums_bytes((int64_t)s->ih * s->iw, (int32_t)(s->n * s->ic)),
                  hp_column_sums_bytes((int64_t)s->oh * s->ow, (int32_t)(s->n * s->oc)));
}

static int64_t groupnorm_bytes(const hp_layer *l, const hp_shape *s) {
    const int32_t width = s->full.oc / l->groups;
    return hp_gpu_groupnorm_partial(s) + 8 * s->n * (2 * (int64_t)s->ic + 4 * (int64_t)(s->ic / width));
}

int64_t hp_gpu_scratch_bytes(const hp_graph *g, int layer, hp_task_op op, const hp_shape *s) {
    const hp_layer *l = &g->layer[layer];
    const int64_t pixels = s->n * s->oh * s->ow;
    if (op == HP_TASK_BWD && l->op == HP_ATTENTION) return attend_bytes(g, layer, s);
    if (op == HP_TASK_BWD && (l->op == HP_LAYERNORM || l->op == HP_RMSNORM))
        return hp_round_up(hp_column_sums_bytes(pixels, s->oc) + 2 * 4 * pixels, LINE);
    if (l->op == HP_GROUPNORM && (op == HP_TASK_FWD || op == HP_TASK_BWD))
        return hp_round_up(groupnorm_bytes(l, s), LINE);
    if (op == HP_TASK_BWD && l->op == HP_SUM && l->n_param > 0)
        return hp_round_up(hp_column_sums_bytes(pixels, s->oc), LINE);
    if (op == HP_TASK_BWD && l->op == HP_MUL)
        return hp_round_up(hp_column_sums_bytes((int64_t)s->oh * s->ow, s->oc), LINE);
    if (op == HP_TASK_BWD && l->op == HP_PRELU)
        return hp_round_up(l->groups == 1 ? hp_column_sums_bytes(pixels * s->oc, 1)
                                          : hp_column_sums_bytes(pixels, s->oc),
                           LINE);
    if (op == HP_TASK_BWDW && !hp_layer_is_matrix(l)) return 0;
    if (op == HP_TASK_BWDW) return hp_round_up(gradient_bytes(l, s), LINE);
    if (l->op == HP_BN) /* and three factors per channel */
        return hp_round_up(hp_column_sums_bytes(pixels, s->oc) + 3 * 4 * (int64_t)s->oc, LINE);
    if (op == HP_TASK_FWD && hp_gpu_mean_rows(l, s))
        return hp_round_up(hp_column_sums_bytes((int64_t)s->ih * s->iw, s->oc), LINE);
    return 0;
}

int64_t hp_gpu_loss_bytes(void) {
    return HP_GPU_LOSS_BLOCKS * HP_METRICS * 8;
}
