/* gpu_scratch.h - what the GPU's own kernels of training need of scratch, in front of the libraries'
 * workspace: exact, so that the planner and the device agree. */
#ifndef HP_GPU_SCRATCH_H
#define HP_GPU_SCRATCH_H

#include "plan/program/program.h"

enum { HP_GPU_LOSS_BLOCKS = 256 }; /* of threads, each with a row of HP_METRICS sums */
enum {
    HP_GPU_MEAN_ROWS = 1024
}; /* means of as many pixels or more are column sums (plan/memory/column_sums.h) */

enum { HP_GPU_BIAS_PARTS = 128 }; /* of the sum of a relative position's gradient */

/* For one task of a layer between boxes: a multiple of 64. */
int64_t hp_gpu_scratch_bytes(const hp_graph *g, int layer, hp_task_op op, const hp_shape *s);
/* Of which the first bytes of an attention's backward pass are a float for each query and head; behind them lie the parts of the
 * gradient of a bias. */
int64_t hp_gpu_attend_products(const hp_graph *g, int layer, const hp_shape *s);
/* Of which, for a group norm, the first bytes are parts of sums; two sums of each sample's channel and four numbers of each
 * sample's group follow, in float64. */
int64_t hp_gpu_groupnorm_partial(const hp_shape *s);
/* For a loss task. */
int64_t hp_gpu_loss_bytes(void);
/* Is this adaptive pooling the mean of whole, large maps? */
bool hp_gpu_mean_rows(const hp_layer *l, const hp_shape *s);

/* A layer's weights as a GPU reads them, (outer, taps, ins): of a convolution (O, kh*kw, I/groups),
 * transposed (I, kh*kw, O/groups), fully connected (O, H*W, C); of a row layer (hp_tp), canonically (I, O), (1, O, I). Canonical ones are (outer, ins, taps). */
typedef struct hp_gpu_weights {
    int64_t outer;
    int32_t taps, ins;
} hp_gpu_weights;
hp_gpu_weights hp_gpu_weights_of(const hp_layer *l, const hp_shape *s);

static inline int64_t hp_gpu_weight_elems(const hp_layer *l, const hp_shape *s) {
    const hp_gpu_weights w = hp_gpu_weights_of(l, s);
    return w.outer * w.taps * w.ins;
}

#endif
