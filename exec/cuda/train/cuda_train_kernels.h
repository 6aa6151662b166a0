/* cuda_train_kernels.h - the kernels of training: launchers of the .cu files of this folder,
 * with plain arguments.
 *
 * Activations and their gradients are dense (N, H, W, C); the first argument is their element type (HP_F32,
 * HP_BF16, HP_F16). Parameters, their gradients and statistics are float32, sums float64. Arithmetic is
 * float32, rounded once. Elementwise kernels work in place. All launches are asynchronous and give the same
 * bits in every run. */
#ifndef HP_CUDA_TRAIN_KERNELS_H
#define HP_CUDA_TRAIN_KERNELS_H

#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "machines/device/device_kind.h"
#include "plan/memory/column_sums.h"
#include "plan/memory/gpu_scratch.h"
#include "networks/graph/graph_gather.h"
#include "networks/graph/resample.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- train/cuda_point.cu: one element at a time --- */

/* y = clamp(x + added); added: NULL = none. */
cudaError_t hp_cuda_clamp(hp_dtype t, void *y, const void *x, const void *added, int64_t n, hp_clamp k,
                          cudaStream_t s);
/* dx0 = dx1 = dy where lo < y < hi, else 0; y NULL: everywhere. Either dx may be NULL. */
cudaError_t hp_cuda_mask(hp_dtype t, void *dx0, void *dx1, const void *dy, const void *y, int64_t n,
                         hp_clamp k, cudaStream_t s);
/* y = act(x), any activation (exec/device/device_act.h); dx = dy times its derivative at x. */
cudaError_t hp_cuda_act_forward(hp_dtype t, int32_t act, void *y, const void *x, int64_t n, float a, float b,
                                cudaStream_t s);
cudaError_t hp_cuda_act_backward(hp_dtype t, int32_t act, void *dx, const void *dy, const void *x, int64_t n,
                                 float a, float b, cudaStream_t s);
/* dst += src */
cudaError_t hp_cuda_accum(hp_dtype t, void *dst, const void *src, int64_t n, cudaStream_t s);

typedef struct hp_cuda_dropout {
    int64_t elems;
    hp_shape shape;
    int64_t first_sample, replica_samples; /* position of the box in the global batch; samples of a replica */
    uint64_t layer;
    double p;
} hp_cuda_dropout;
cudaError_t hp_cuda_drop(hp_dtype t, void *to, const void *from, const hp_cuda_dropout *d,
                         const hp_cuda_step *step, cudaStream_t s);

/* --- train/cuda_move.cu --- */

/* n[0] x n[1] x n[2] runs of contiguous elements. Strides in elements. */
typedef struct hp_cuda_runs {
    void *to;
    const void *from;
    int64_t n[3], to_stride[3], from_stride[3], run;
} hp_cuda_runs;
cudaError_t hp_cuda_move(int element_bytes, const hp_cuda_runs *r, cudaStream_t s);
/* to += from */
cudaError_t hp_cuda_move_add(hp_dtype t, const hp_cuda_runs *r, cudaStream_t s);

/* --- train/cuda_norm.cu: batch norm --- */

/* Running statistics: r <- (r * keep^(before[0] + before[1] * replica) + fresh * s)
 * * keep^(after[0] + after[1] * replica). */
typedef struct hp_cuda_running {
    float *mean, *var;
    bool stays; /* unchanged */
    double keep, fresh, before[2], after[2];
} hp_cuda_running;

typedef struct hp_cuda_norm {
    hp_dtype dtype;
    int64_t rows; /* pixels in the box */
    int32_t channels, oh, ow;
    bool all;       /* true: every pixel counts in the statistics; false: those within: */
    hp_box counted; /* relative to the box */
    double pixels;  /* number of pixels in the statistics, over all ranks */
    double eps;
    hp_clamp clamp;
    const void *x, *added, *dy;
    void *y, *dx, *dadded; /* y: read for the backward mask; NULL: no mask */
    float *save;           /* mean, inverse standard deviation */
    const float *gamma, *beta;
    struct {
        float *gamma, *beta;
        bool add; /* to what is there */
    } gradient;
    double *sums; /* over all ranks, or NULL */
    struct {
        double *partial; /* hp_column_sums_bytes */
        float *factor;   /* three rows */
    } scratch;
    hp_cuda_running running;
    const hp_cuda_step *step;
} hp_cuda_norm;
cudaError_t hp_cuda_norm_stats(const hp_cuda_norm *n, cudaStream_t s); /* sums over the pixels counted here */
cudaError_t hp_cuda_norm_forward(const hp_cuda_norm *n, cudaStream_t s);
cudaError_t hp_cuda_norm_eval(const hp_cuda_norm *n, cudaStream_t s);
cudaError_t hp_cuda_norm_backward_stats(const hp_cuda_norm *n, cudaStream_t s);
cudaError_t hp_cuda_norm_backward(const hp_cuda_norm *n, cudaStream_t s);

/* --- train/cuda_pool.cu --- */

typedef struct hp_cuda_pool {
    hp_shape shape;
    int32_t pad_h, pad_w; /* padding of the whole layer */
    bool adaptive, count_pad;
} hp_cuda_pool;
/* save: index of the element within the window, or NULL. */
cudaError_t hp_cuda_maxpool(hp_dtype t, void *y, uint8_t *save, const void *x, const hp_cuda_pool *p,
                            cudaStream_t s);
cudaError_t hp_cuda_maxpool_backward(hp_dtype t, void *dx, const uint8_t *save, const void *dy,
                                     const hp_cuda_pool *p, cudaStream_t s);
cudaError_t hp_cuda_meanpool(hp_dtype t, void *y, const void *x, const hp_cuda_pool *p, cudaStream_t s);
cudaError_t hp_cuda_meanpool_backward(hp_dtype t, void *dx, const void *dy, const hp_cuda_pool *p,
                                      cudaStream_t s);
/* Mean over each sample's rows: (samples, rows, channels) to (samples, channels). partial:
 * hp_column_sums_bytes. */
cudaError_t hp_cuda_mean_rows(hp_dtype t, void *y, const void *x, int64_t samples, int64_t rows,
                              int32_t channels, double *partial, cudaStream_t s);

/* --- train/cuda_mul.cu --- */

typedef struct hp_cuda_mul {
    const void *x, *second, *dy;
    const void *y; /* read for the backward mask; NULL: no mask */
    void *to, *dx, *dsecond;
    bool vector;             /* second: one row of channels per sample */
    int64_t samples, pixels; /* pixels per sample */
    int32_t channels;
    hp_clamp clamp;
    double *partial; /* scratch for a vector's gradient: hp_column_sums_bytes */
} hp_cuda_mul;
/* to = clamp(x second) */
cudaError_t hp_cuda_multiply(hp_dtype t, const hp_cuda_mul *m, cudaStream_t s);
/* Computes dx and dsecond; either may be NULL. */
cudaError_t hp_cuda_multiply_backward(hp_dtype t, const hp_cuda_mul *m, cudaStream_t s);

typedef struct hp_cuda_prelu {
    const void *x, *dy; /* dy: NULL = forward */
    void *to;
    const float *slope;
    bool one, add; /* one slope for all channels; add to the gradients */
    int64_t pixels;
    int32_t channels;
    float *grad;
    double *partial; /* scratch for the gradients: hp_column_sums_bytes */
} hp_cuda_prelu;
/* to = prelu(x), or dy times its derivative. */
cudaError_t hp_cuda_prelu_map(hp_dtype t, const hp_cuda_prelu *p, cudaStream_t s);
cudaError_t hp_cuda_prelu_slopes(hp_dtype t, const hp_cuda_prelu *p, cudaStream_t s);

/* --- train/cuda_resize.cu --- */

typedef struct hp_cuda_resize {
    hp_shape shape;
    hp_resampling down, along;
} hp_cuda_resize;
cudaError_t hp_cuda_resize_forward(hp_dtype t, void *y, const void *x, const hp_cuda_resize *r,
                                   cudaStream_t s);
cudaError_t hp_cuda_resize_backward(hp_dtype t, void *dx, const void *dy, const hp_cuda_resize *r,
                                    cudaStream_t s);

/* --- train/cuda_gather.cu --- */

typedef struct hp_cuda_gather {
    hp_shape shape;
    hp_gathering rule;
    int32_t first; /* first channel of the input's box */
} hp_cuda_gather;
cudaError_t hp_cuda_gather_forward(hp_dtype t, void *y, const void *x, const hp_cuda_gather *g,
                                   cudaStream_t s);
cudaError_t hp_cuda_gather_backward(hp_dtype t, void *dx, const void *dy, const hp_cuda_gather *g,
                                    cudaStream_t s);

/* --- train/cuda_reduce.cu: a pixel's channels reduced to one --- */

typedef struct hp_cuda_reduce {
    int64_t pixels;
    int32_t channels, kind; /* hp_channel_reduction */
} hp_cuda_reduce;
cudaError_t hp_cuda_reduce_forward(hp_dtype t, void *y, const void *x, const hp_cuda_reduce *r,
                                   cudaStream_t s);
/* x: read for the maximum only. */
cudaError_t hp_cuda_reduce_backward(hp_dtype t, void *dx, const void *dy, const void *x,
                                    const hp_cuda_reduce *r, cudaStream_t s);

/* --- train/cuda_layernorm.cu: layer norm and RMS norm --- */

typedef struct hp_cuda_layernorm {
    hp_dtype dtype;
    int64_t pixels;
    int32_t ins, first, outs; /* channels read; the first and number of those computed */
    bool centred, add;        /* layer norm, else RMS norm; add to the gradients */
    float eps;
    const void *x, *dy;
    void *y, *dx; /* dx: NULL = not wanted */
    const float *gamma, *beta;
    float *dgamma, *dbeta; /* NULL if there is no beta */
    double *partial;       /* scratch of the backward pass: hp_column_sums_bytes, */
    float *moments;        /* and two per pixel */
} hp_cuda_layernorm;
cudaError_t hp_cuda_layernorm_forward(const hp_cuda_layernorm *l, cudaStream_t s);
cudaError_t hp_cuda_layernorm_backward(const hp_cuda_layernorm *l, cudaStream_t s);

/* --- train/cuda_groupnorm.cu --- */

/* Reads each sample's whole map, which is shape's input; the output may be part of it. */
typedef struct hp_cuda_groupnorm {
    hp_dtype dtype;
    hp_shape shape;
    int32_t width, first; /* channels per group; the first computed channel among those read */
    bool add;             /* to the gradients */
    double eps, share;    /* share: 1 / elements of a sample's group */
    const void *x, *dy;
    void *y, *dx; /* dx: NULL = not wanted */
    const float *gamma, *beta;
    float *dgamma, *dbeta;    /* NULL if there is no beta */
    int64_t all_groups;       /* groups of all samples */
    double *partial, *column, /* scratch: plan/memory/gpu_scratch.h */
        *group;
} hp_cuda_groupnorm;
cudaError_t hp_cuda_groupnorm_forward(const hp_cuda_groupnorm *g, cudaStream_t s);
cudaError_t hp_cuda_groupnorm_backward(const hp_cuda_groupnorm *g, cudaStream_t s);

/* --- train/cuda_tokens.cu: tables --- */

typedef struct hp_cuda_embedding {
    int64_t pixels;
    int32_t rows, channels; /* size of the local part of the table, which starts at row `first` */
    int32_t first, all;     /* rows of the whole table */
    const float *id;        /* clamped to the nearest row; y is 0 for rows on other ranks */
} hp_cuda_embedding;
cudaError_t hp_cuda_embed(hp_dtype t, void *y, const float *table, const hp_cuda_embedding *e,
                          cudaStream_t s);
/* grad (+)= dy, summed pixel by pixel. */
cudaError_t hp_cuda_embed_backward(hp_dtype t, float *grad, const void *dy, const hp_cuda_embedding *e,
                                   bool add, cudaStream_t s);

/* A box of a table (H, W, C) and the same box of every sample's map. */
typedef struct hp_cuda_places {
    int64_t samples, sample, first; /* elements between samples; of the table before the box */
    int32_t h, w, c;                /* size of the box */
    int64_t row, pixel;             /* elements between the table's rows and pixels */
} hp_cuda_places;
/* y = x + table; x NULL: the table alone. */
cudaError_t hp_cuda_add_places(hp_dtype t, void *y, const void *x, const float *table,
                               const hp_cuda_places *p, cudaStream_t s);
/* grad (+)= dy, summed over samples. */
cudaError_t hp_cuda_sum_places(hp_dtype t, float *grad, const void *dy, const hp_cuda_places *p, bool add,
                               cudaStream_t s);
/* y = sum of the blocks of channels of x, + bias; bias: NULL = none. May overwrite one block. */
cudaError_t hp_cuda_sum_blocks(hp_dtype t, void *y, const void *x, const float *bias, int64_t pixels,
                               int32_t outs, int32_t ins, cudaStream_t s);

/* --- train/cuda_attention.cu, attention_back.cu --- */

/* A box of maps whose channels are those of heads, with at most HP_GPU_HEAD_CHANNELS channels each. */
typedef struct hp_cuda_heads {
    void *at; /* NULL: not there */
    int32_t y0, x0, h, w, c0, c;
} hp_cuda_heads;

/* Queries are the pixels of y, keys those of k. Both lie in the same windows of the map, or the whole
 * map is one window. */
typedef struct hp_cuda_attend {
    hp_dtype dtype;
    hp_dtype factors; /* type that products' factors are rounded to: dtype; forward with float32
                       * also a 16-bit type */
    int64_t samples;
    int32_t channels, first_head, heads,
        group; /* channels per head; local heads; query heads that share keys and values */
    hp_cuda_heads q, k, v, y, dy, dq, dk, dv;
    struct {
        int32_t map_h, map_w, h, w, shift_h, shift_w;
    } window;
    bool causal, add; /* add to the bias's gradient */
    float scale;
    const float *bias; /* (heads, 2 h - 1, 2 w - 1 of the window) or NULL */
    float *dbias;
    const float *turn; /* (map_h * map_w, channels): cosines, then sines, by position; or NULL */
    float *log_sum;    /* (pixels of y, heads); NULL: not kept */
    float *product;    /* same shape; scratch of the backward pass */
    double *partial;   /* scratch for the bias's gradient: (HP_GPU_BIAS_PARTS, heads, offsets) */
} hp_cuda_attend;
cudaError_t hp_cuda_attend_forward(const hp_cuda_attend *a, cudaStream_t s);
cudaError_t hp_cuda_attend_backward(const hp_cuda_attend *a, cudaStream_t s);

/* --- train/cuda_weights.cu --- */

/* Packs weights (outer, ins, taps) in float32 as (outer, taps, ins). */
cudaError_t hp_cuda_pack(hp_dtype t, void *pack, const float *w, int64_t outer, int32_t ins, int32_t taps,
                         cudaStream_t s);
/* Unpacks their gradient: grad = dw, or grad += dw. */
cudaError_t hp_cuda_unpack(hp_dtype t, float *grad, const void *dw, int64_t outer, int32_t ins, int32_t taps,
                           bool add, cudaStream_t s);
/* Adds the bias to every row. */
cudaError_t hp_cuda_bias(hp_dtype t, void *y, const float *bias, int64_t rows, int32_t channels,
                         cudaStream_t s);
/* Sums dy over rows. partial: hp_column_sums_bytes. */
cudaError_t hp_cuda_bias_gradient(hp_dtype t, float *grad, const void *dy, int64_t rows, int32_t channels,
                                  bool add, double *partial, cudaStream_t s);

/* --- train/cuda_step.cu --- */

typedef struct hp_cuda_loss {
    const void *logits;
    void *dlogits; /* or NULL */
    const int32_t *labels;
    int64_t rows;
    int32_t classes;
    /* Classes may be spread over ranks: `all` in total, `first` the first one here; sums as maxsum leaves
     * them, NULL: all classes are here. */
    int32_t all, first, members;
    double *sums;
    int64_t first_sum;
    double scale; /* factor of dlogits, besides step->loss_scale */
    const hp_cuda_step *step;
    double *partial, *metric; /* scratch: HP_GPU_LOSS_BLOCKS x HP_METRICS */
} hp_cuda_loss;
cudaError_t hp_cuda_softmax_loss(hp_dtype t, const hp_cuda_loss *l, cudaStream_t s);
cudaError_t hp_cuda_maxsum(hp_dtype t, const hp_cuda_loss *l, cudaStream_t s);

typedef struct hp_cuda_update {
    float *w, *m, *v;
    const float *g;
    int64_t n, decayed;   /* number of weights; only the first `decayed` decay */
    double rows;          /* number of all labels, present or not; 0: the gradients are means already */
    bool clips;           /* by metric[HP_METRIC_SQUARES] */
    const double *metric; /* HP_METRIC_COUNTED: number of labels present */
    const hp_cuda_step *step;
} hp_cuda_update;
/* Does nothing if HP_METRIC_OVERFLOW is set. */
cudaError_t hp_cuda_descend(int32_t optimizer, const hp_cuda_update *a, cudaStream_t s);
/* metric[HP_METRIC_SQUARES] += sum of squares. partial: scratch, HP_GPU_LOSS_BLOCKS. */
cudaError_t hp_cuda_squares(const float *g, int64_t n, double *partial, double *metric, cudaStream_t s);
/* Sets metric[HP_METRIC_OVERFLOW] = 1 if g has an infinity or a NaN. */
cudaError_t hp_cuda_finite(const float *g, int64_t n, double *metric, cudaStream_t s);

#ifdef __cplusplus
}
#endif

#endif
