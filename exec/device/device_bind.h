/* device_bind.h - a compute task with its operands turned from ids into addresses, once, before the first step.
 *
 * What every device shares: the geometry of a layer between the boxes of its operands, where they and the
 * parameters lie, and the factors that make running statistics and dropout independent of how the batch and
 * the image were split. */
#ifndef HP_DEVICE_BIND_H
#define HP_DEVICE_BIND_H

#include "exec/device/device.h"
#include "networks/graph/optimizer.h"
#include "networks/graph/summands.h"

enum { HP_BOUND_BOXES = 2 };

typedef struct hp_bound {
    const hp_task *task;
    const hp_layer *layer; /* of pack, fwd, bwd, bwdw, stats, bstats; else NULL */
    int32_t layer_id;
    int32_t n_in;
    hp_shape shape;              /* between the boxes of the operands; pack: the channels that are here */
    int64_t in_elems, out_elems; /* of the boxes: first input, output */
    int32_t in_c[HP_MAX_IN];     /* channels of each input's box */
    int32_t in_at[HP_MAX_IN];    /* concat: where they lie among the channels of the output's box */
    hp_box in_box[HP_BOUND_BOXES], out_box; /* of the first inputs and the output, in the whole maps */
    int64_t sample0;                        /* first sample of the output's box, within the micro-batch */
    /* Operands; NULL = absent. Activations are (N, H, W, C) in the program's dtype. */
    void *y, *dy, *save;
    void *x[HP_MAX_IN], *dx[HP_MAX_IN];
    double *sums;   /* bn: (2, C), added up over ranks; NULL: the statistics are this buffer's alone */
    hp_box counted; /* bn with sums: pixels of the output that count here, relative to its box */
    /* Parameters in the layer's order (conv, linear: weight, bias; bn: gamma, beta, mean, var), and their
     * gradients, from the first channel of the output's box on. */
    void *param[HP_MAX_LAYER_PARAMS], *grad[HP_MAX_LAYER_PARAMS];
    /* Deployed: how the operands are stored, and the box of the output in the whole map is shape's. y holds
     * the last input on entry where hp_layer_adds(layer). */
    hp_dtype x_dtype[HP_MAX_IN], y_dtype;
    void *pack_forward, *pack_backward, *scratch;
    int64_t pack_forward_bytes, pack_backward_bytes;
    int64_t scratch_bytes;
    /* loss: y = dlogits, x[0] = logits; accum, copy, part, encode, decode: y = dst, x[0] = src; zero: y = first element;
     * update, finite, norm: first element of the range of each, `count` of which the first `decayed` decay; states that the
     * optimiser does not have are the first one */
    void *weight, *gradient, *state[HP_MAX_OPTIMIZER_STATES];
    int32_t optimizer;
    bool clips; /* gradients, by HP_METRIC_SQUARES */
    int64_t decayed;
    const hp_box *dst_box, *src_box; /* copy */
    hp_codec codec;                  /* encode, decode: `count` values in rows of `cols`; of so many codes */
    int64_t cols, n_codes;
    void *residual; /* encode: what is lost, of the values' type; NULL: forgotten */
    /* project: y = P, x[0] = gradients; factor: y = Q, x[0] = P; expand: y = gradients, x[0] = P, x[1] = Q; residual of
     * all: what is lost, then the last Q. Of which matrices: plan/program/factors.h. */
    const hp_graph *graph; /* layers, codecs of gradients */
    const hp_role *role;
    hp_dtype dtype; /* copy, zero, part: of the elements; encode, decode: of the values */
    int32_t *labels;
    /* loss, maxsum: classes of the network, and the first that is in x[0]; `sums` then (HP_MAXSUMS of `count` rows) of
     * each of `members` ranks, NULL: all classes are here; first_sum: this rank's first */
    int32_t classes, first_class, members;
    int64_t first_sum;
    double *metric; /* HP_METRICS */
    int64_t count;  /* loss: rows; accum, zero, update, norm, part: elements */
    int64_t batch;  /* over which the loss is a mean: the global one, or the replica's alone */
    int64_t pixels; /* loss, update: of the network's whole logits map; 1 for a classifier */
    int64_t micro_batch;
    int32_t dp, micro, bn; /* of the program */
} hp_bound;

/* Resolves task `t` of the role. Only compute tasks other than load may be bound. */
hp_bound hp_bind(const hp_device_config *c, int t);

/* Running statistics: r <- r * before + momentum * s, then r <- r * after. Summed over the replicas (and over
 * the ranks that take turns within one) this is "all groups applied in batch order". */
typedef struct hp_running {
    double before, fresh, after;
} hp_running;
hp_running hp_running_factors(const hp_bound *b, const hp_step *s);

/* The activation as a clamp to [lo, hi]; infinite bounds do nothing. */
typedef struct hp_clamp {
    float lo, hi;
} hp_clamp;
hp_clamp hp_clamp_of(const hp_layer *l);

/* Rows of an embedding's table that are here. */
static inline hp_extent hp_embedding_rows(const hp_bound *b) {
    const int32_t rows = b->graph->param[b->layer->param[0]].dim[0];
    if (b->layer->tp != (int32_t)HP_TP_ROW) return (hp_extent){0, rows};
    const int width = b->shape.full_oc / hp_summands(b->layer);
    const hp_summand s = hp_summand_at(b->graph, b->layer, b->shape.oc0 / width);
    return (hp_extent){s.in_lo, s.in_hi};
}

/* The row of an embedding's table that an id names, of those that are here; one that is no id names the nearest; -1: it is
 * another rank's. */
static inline int64_t hp_embedding_row(const hp_bound *b, hp_extent here, double id) {
    const double last = b->graph->param[b->layer->param[0]].dim[0] - 1;
    const int64_t row = id > 0 ? (int64_t)(id < last ? id : last) : 0;
    return row >= here.lo && row < here.hi ? row - here.lo : -1;
}

/* Dropout keeps an element of the global batch or not: the same in forward, recomputation and backward, and
 * however the batch and the map are split. Fills keep (W, C) with 0 or 1/(1-p) for row `y` of sample `n` of
 * the output's box. */
void hp_dropout_row(const hp_bound *b, const hp_step *s, int64_t n, int y, float *keep);
/* The same for element `i` of the output's box. */
float hp_dropout_at(const hp_bound *b, const hp_step *s, int64_t i);

#endif
