/* device_bind.h - a compute task with its operands resolved from ids to addresses, once,
 * before the first step.
 *
 * Shared by all devices: a layer's geometry between the boxes of its operands, and addresses of
 * operands and parameters. Also the factors that make running statistics and dropout independent of how
 * batch and image were split. */
#ifndef HP_DEVICE_BIND_H
#define HP_DEVICE_BIND_H

#include "exec/device/device.h"
#include "networks/graph/optimizer.h"
#include "networks/graph/summands.h"

enum { HP_BOUND_BOXES = 2 };

/* Where the operands of a layer lie in the whole maps. */
typedef struct hp_bound_map {
    int32_t in_c[HP_MAX_IN];                /* channels of each input's box */
    int32_t in_at[HP_MAX_IN];               /* concat: first channel of each input in the output's box */
    hp_box in_box[HP_BOUND_BOXES], out_box; /* the boxes of the first inputs and of the output */
    int64_t sample0;                        /* first sample of the output's box, within the micro-batch */
    hp_box counted; /* bn with sums: the output's pixels that count here, relative to its box */
} hp_bound_map;

/* Deployed networks: the types that operands are stored in. */
typedef struct hp_bound_stored {
    hp_dtype x[HP_MAX_IN], y;
} hp_bound_stored;

/* A layer's weights as the device's kernels read them; NULL: it has none. */
typedef struct hp_bound_pack {
    void *forward, *backward;
    int64_t forward_bytes, backward_bytes;
} hp_bound_pack;

/* Memory that a task may overwrite. */
typedef struct hp_bound_scratch {
    void *at;
    int64_t bytes;
} hp_bound_scratch;

/* What the program says of the whole step. */
typedef struct hp_bound_step {
    int64_t batch;         /* samples over which the loss is a mean: all, or the replica's alone */
    int64_t pixels;        /* in the network's whole logits map; 1 for a classifier */
    int64_t micro_batch;   /* samples */
    int32_t dp, micro, bn; /* replicas, micro-batches, hp_bn */
    int32_t *labels;       /* loss: one for each row */
    double *metric;        /* HP_METRICS sums */
} hp_bound_step;

/* update, finite, norm: the first element of each range of `count` elements. A state that the optimiser
 * lacks is its first. */
typedef struct hp_bound_update {
    void *weight, *gradient, *state[HP_MAX_OPTIMIZER_STATES];
    int32_t optimizer;
    bool clips;      /* gradients are clipped, by HP_METRIC_SQUARES */
    int64_t decayed; /* number of leading weights that decay */
} hp_bound_update;

/* encode, decode: `count` values in rows of `cols`, and n codes. project, factor, expand: see
 * plan/program/factors.h. */
typedef struct hp_bound_code {
    hp_codec codec;
    int64_t cols, n;
    void *residual; /* encode: what the code loses, in the values' type; NULL: forgotten. Factors:
                     * that, then the last Q */
} hp_bound_code;

typedef struct hp_bound_copy {
    const hp_box *dst, *src;
} hp_bound_copy;

/* loss, maxsum: the network's classes, some of which may be on other ranks. */
typedef struct hp_bound_loss {
    int32_t classes, first_class; /* in the network; the first one in x[0] */
    int32_t members;   /* ranks that share them: hp_bound.sums holds HP_MAXSUMS of `count` rows of each */
    int64_t first_sum; /* index of this rank's first */
} hp_bound_loss;

/* Operands that a task does not have are NULL. Activations are (N, H, W, C) in the program's dtype. */
typedef struct hp_bound {
    const hp_task *task;
    const hp_layer *layer; /* for pack, fwd, bwd, bwdw, stats, bstats; else NULL */
    int32_t layer_id;
    const hp_graph *graph; /* for layers, and for codecs of gradients */
    const hp_role *role;
    hp_dtype dtype; /* copy, zero, part: type of the elements; encode, decode: of the values */
    hp_shape shape; /* between the boxes of the operands; pack: the local channels */
    int32_t n_in;
    int64_t in_elems, out_elems; /* in the boxes of the first input and of the output */
    /* Layers as hp_operands says; deployed, y holds the last input on entry where hp_layer_adds(layer).
     * loss: y = dlogits, x[0] = logits. accum, copy, part, encode, decode: y = destination, x[0] =
     * source. zero: y = first element. project: y = P, x[0] = gradients; factor: y = Q, x[0] = P; expand:
     * y = gradients, x[0] = P, x[1] = Q. */
    void *y, *dy, *save;
    void *x[HP_MAX_IN], *dx[HP_MAX_IN];
    double *sums; /* bn: (2, C), summed over ranks; NULL: the statistics are of this buffer
                   * alone. loss: see there */
    /* Parameters in the layer's order (conv, linear: weight, bias; bn: gamma, beta, mean, var), and their
     * gradients. They start at the first channel of the output's box. */
    void *param[HP_MAX_LAYER_PARAMS], *grad[HP_MAX_LAYER_PARAMS];
    int64_t count; /* loss: rows; accum, zero, update, norm, part: elements; encode, decode: values */
    hp_bound_map map;
    hp_bound_stored stored;
    hp_bound_pack pack;
    hp_bound_scratch scratch;
    hp_bound_step step;
    union { /* by the task's kind */
        hp_bound_update update;
        hp_bound_code code;
        hp_bound_copy copy;
        hp_bound_loss loss;
    };
} hp_bound;

/* Resolves task `t` of the role. Only compute tasks other than load may be bound. */
hp_bound hp_bind(const hp_device_config *c, int t);

/* Running statistics: r <- r * before + fresh * s, then r <- r * after. Summed over the replicas, and over
 * the ranks that take turns within one, this equals "all groups applied in batch order". */
typedef struct hp_running {
    double before, fresh, after;
} hp_running;
hp_running hp_running_factors(const hp_bound *b, const hp_step *s);

/* The activation as a clamp to [lo, hi]; infinite bounds have no effect. */
typedef struct hp_clamp {
    float lo, hi;
} hp_clamp;
hp_clamp hp_clamp_of(const hp_layer *l);

/* Rows of an embedding's table on this rank. */
static inline hp_extent hp_embedding_rows(const hp_bound *b) {
    const int32_t rows = b->graph->param[b->layer->param[0]].dim[0];
    if (b->layer->tp != (int32_t)HP_TP_ROW) return (hp_extent){0, rows};
    const int width = b->shape.full.oc / hp_summands(b->layer);
    const hp_summand s = hp_summand_at(b->graph, b->layer, b->shape.oc0 / width);
    return (hp_extent){s.in_lo, s.in_hi};
}

/* Index among these rows of the row that an id names; an invalid id names the nearest; -1: another rank's. */
static inline int64_t hp_embedding_row(const hp_bound *b, hp_extent here, double id) {
    const double last = b->graph->param[b->layer->param[0]].dim[0] - 1;
    const int64_t row = id > 0 ? (int64_t)(id < last ? id : last) : 0;
    return row >= here.lo && row < here.hi ? row - here.lo : -1;
}

/* Dropout keeps or drops an element of the global batch: the same in forward, recomputation and
 * backward, however batch and map are split. Fills keep (W, C) with 0 or 1/(1-p) for row `y` of sample
 * `n` of the output's box. */
void hp_dropout_row(const hp_bound *b, const hp_step *s, int64_t n, int y, float *keep);
/* The same for element `i` of the output's box. */
float hp_dropout_at(const hp_bound *b, const hp_step *s, int64_t i);

#endif
