/* bind.h - a compute task with its operands turned from ids into addresses, once, before the first step.
 *
 * What every device shares: the geometry of a layer on a micro-batch, where its operands and parameters lie,
 * and the factors that make running statistics independent of how the batch was split. */
#ifndef HP_BIND_H
#define HP_BIND_H

#include "exec/device.h"

typedef struct hp_bound {
    const hp_task *task;
    const hp_layer *layer; /* NULL for loss, accum, sgd */
    int32_t layer_id;
    int32_t n_in;
    hp_shape shape;
    int64_t in_elems, out_elems; /* of the micro-batch: first input, output */
    int32_t in_c[HP_MAX_IN];     /* channels of each input */
    /* Operands; NULL = absent. Activations are (N, H, W, C) in the program's dtype. */
    void *y, *dy, *save;
    void *x[HP_MAX_IN], *dx[HP_MAX_IN];
    /* Parameters in the layer's order (conv, linear: weight, bias; bn: gamma, beta, mean, var), and their
     * gradients. */
    void *param[HP_MAX_LAYER_PARAMS], *grad[HP_MAX_LAYER_PARAMS];
    void *pack_forward, *pack_backward, *scratch;
    int64_t scratch_bytes;
    /* loss: y = dlogits, x[0] = logits; accum: y = dst, x[0] = src; sgd: first element of the range of each
     */
    void *sgd_w, *sgd_g, *sgd_m;
    int32_t *labels;
    double *metric; /* HP_METRICS */
    int64_t count;  /* loss: rows; accum, sgd: elements */
    int64_t batch;  /* global batch */
    int64_t micro_batch;
    int32_t dp, micro; /* of the program */
} hp_bound;

/* Resolves task `t` of the role. Only compute tasks other than load may be bound. */
hp_bound hp_bind(const hp_device_config *c, int t);

/* Running statistics: r <- r * before + momentum * s, then r <- r * after. With replica d of D and M
 * micro-batches this sums over replicas to "all groups applied in batch order". */
typedef struct hp_running {
    double before, fresh, after;
} hp_running;
hp_running hp_running_factors(const hp_bound *b, const hp_step *s);

/* The activation as a clamp to [lo, hi]; infinite bounds do nothing. */
typedef struct hp_clamp {
    float lo, hi;
} hp_clamp;
hp_clamp hp_clamp_of(int act);

/* Dropout keeps element `e` of sample `s` (in the global batch) or not: the same in forward, recomputation
 * and backward. Fills keep[i] with 0 or 1/(1-p) for the elements of one sample. */
void hp_dropout_scale(const hp_bound *b, const hp_step *s, int64_t sample_in_micro, int64_t first,
                      int64_t count, float *keep);

#endif
