/* precision.h - the precisions of a strategy (`prec=`), and the network that training in one of them runs.
 *
 * Training in bf16 and fp16 stores every map, its gradient and messages of them in 16 bits; products are
 * summed in float32. These stay float32: parameters, sums of their gradients (which a library may give in 16
 * bits for one micro-batch), optimiser state and batch norm statistics. Matrix layers read a 16-bit copy of
 * these master weights, which every step packs anew. In fp16, the loss is scaled against underflow
 * (exec/train/loss_scale.h). tf32 stores float32 and rounds the factors of matrix products to 10 bits of
 * mantissa.
 *
 * Source: Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3; Kalamkar et al., "A Study of
 * BFLOAT16 for Deep Learning Training", 2019. */
#ifndef HP_PRECISION_H
#define HP_PRECISION_H

#include "networks/graph/graph.h"

typedef enum hp_prec {
    HP_PREC_FP32,
    HP_PREC_TF32,
    HP_PREC_BF16,
    HP_PREC_FP16,
    HP_PREC_INT8,
    HP_PREC_INT8_DYNAMIC,
    HP_PRECS
} hp_prec;
extern const char *const hp_prec_names[]; /* "fp32", "tf32", "bf16", "fp16", "int8", "int8-dynamic", NULL */

/* How inference stores most maps (networks/deploy/deploy.h) and training all of them. */
hp_store hp_prec_store(int32_t prec);

/* Returns g for training in `prec`. Shares layers and parameters; the tensors' stores are its own. Lives in
 * `arena`. hp_prec_allowed rejects precisions that cannot be trained in. Uses plain gradient descent unless
 * the caller sets `optimizer` and `clips`. */
hp_graph *hp_graph_train_in(hp_arena *arena, const hp_graph *g, int32_t prec);

/* Must gradients be scaled, and a step skipped if one overflowed? */
bool hp_graph_scales_loss(const hp_graph *g);

/* Does the optimiser need the step's metric? It needs the number of pixels if some may be ignored in the mean
 * loss, whether any rank's gradients overflowed, or the global norm for clipping. */
bool hp_graph_metric_first(const hp_graph *g);

#endif
