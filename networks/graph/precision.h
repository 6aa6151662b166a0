/* precision.h - the precisions a strategy may ask for (`prec=`), and a network as training in one of them
 * runs it.
 *
 * Training in bf16 and fp16 stores every map, its gradient and what messages carry of them in 16 bits;
 * products are summed in float32. Parameters, sums of their gradients (which a library may give in 16 bits
 * for one micro-batch), the optimiser's state and the statistics of batch norm stay float32: the master
 * weights, of which matrix layers read a 16-bit copy that every step packs anew. In fp16 the loss is scaled
 * against underflow (exec/train/loss_scale.h). tf32 stores float32, and rounds the factors of matrix layers'
 * products to 10 bits of mantissa. Source: Micikevicius et al., "Mixed Precision Training", ICLR 2018,
 * section 3; Kalamkar et al., "A Study of BFLOAT16 for Deep Learning Training", 2019. */
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

/* How most maps are stored in inference (networks/graph/deploy.h) and all of them in training. */
hp_store hp_prec_store(int32_t prec);

/* g for training in `prec`: its layers and parameters shared, the tensors' stores its own. Lives in `arena`.
 * What cannot be trained in is refused by hp_prec_allowed. By plain gradient descent, unless the caller sets
 * `optimizer` and `clips`. */
hp_graph *hp_graph_train_in(hp_arena *arena, const hp_graph *g, int32_t prec);

/* Must gradients be scaled, and a step be skipped where one has overflowed? */
bool hp_graph_scales_loss(const hp_graph *g);

/* Does the optimiser need the step's metric? Where the loss is a mean over pixels, of which some may be
 * ignored, their number; where gradients may have overflowed, whether they did, on any rank; where they are
 * clipped, the norm of all of them. */
bool hp_graph_metric_first(const hp_graph *g);

#endif
