/* gpu_scratch.h - scratch of the GPU's own training kernels, in front of the libraries' workspace. The sizes
 * are exact, so that the planner and the device agree. */
#ifndef HP_GPU_SCRATCH_H
#define HP_GPU_SCRATCH_H

#include "plan/program/program.h"

enum { HP_GPU_LOSS_BLOCKS = 256 }; /* thread blocks, each with a row of HP_METRICS sums */
enum {
    HP_GPU_MEAN_ROWS = 1024
}; /* means over at least this many pixels use column sums (plan/memory/column_sums.h) */

enum { HP_GPU_BIAS_PARTS = 128 }; /* partial sums of a relative position bias's gradient */

/* Scratch bytes for one task of a layer between boxes: a multiple of 64. */
int64_t hp_gpu_scratch_bytes(const hp_graph *g, int layer, hp_task_op op, const hp_shape *s);
/* Bytes at the start of an attention's backward scratch: one float per query and head. Partial gradients of a
 * bias follow. */
int64_t hp_gpu_attend_products(const hp_graph *g, int layer, const hp_shape *s);
/* Bytes at the start of a group norm's scratch: partial sums. Behind them lie two sums per sample and channel
 * and four numbers per sample and group, in float64. */
int64_t hp_gpu_groupnorm_partial(const hp_shape *s);
/* For a loss task. */
int64_t hp_gpu_loss_bytes(void);
/* Is this adaptive pooling a mean over whole, large maps? */
bool hp_gpu_mean_rows(const hp_layer *l, const hp_shape *s);

/* A layer's weights in the GPU's layout (outer, taps, ins). Convolution: (O, kh*kw, I/groups); transposed:
 * (I, kh*kw, O/groups); fully connected: (O, H*W, C); row layer (hp_tp): (1, O, I), canonically (I, O). The
 * canonical layout is (outer, ins, taps). */
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
