/* cuda_infer_kernels.h - the kernels of inference: launchers of the .cu files of this folder,
 * with plain arguments.
 *
 * Maps are dense (N, H, W, C) in any store; a hp_qparams defines what their elements mean. Arithmetic is
 * float32 in the order of exec/device/infer/op.h and exec/device/kernels/panel.h, operation by operation,
 * fused only where they are. So bytes equal those of the processor bit for bit. Exception: CUDA's expf and
 * tanhf differ from a C library's in the last place. So a byte computed from them can differ by one where the
 * value is half way between two. All launches are asynchronous and give the same bits in every run. */
#ifndef HP_CUDA_INFER_KERNELS_H
#define HP_CUDA_INFER_KERNELS_H

#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "exec/device/infer/op.h"
#include "networks/graph/resample.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hp_cuda_act {
    int32_t act; /* hp_act */
    bool clamps; /* to lo .. hi */
    float a, b, lo, hi;
} hp_cuda_act;

/* How outputs are stored. Bytes: nearest(v * to.inverse) within lo .. hi, + to.zero. */
typedef struct hp_cuda_put {
    hp_qparams to;
    float lo, hi;
} hp_cuda_put;

/* Table of the byte that each byte becomes. */
typedef struct hp_cuda_recode {
    bool there;
    uint8_t byte[256];
} hp_cuda_recode;

/* --- infer/cuda_infer_point.cu: one element at a time --- */

typedef enum hp_cuda_point_kind {
    HP_CUDA_CONVERT, /* x0 */
    HP_CUDA_ADD,     /* unit[0] x0 + unit[1] x1 */
    HP_CUDA_MUL,     /* x0 x1 */
    HP_CUDA_AFFINE,  /* (unit[0] factor[c]) x0 + unit[1] bias[c], + x1 if present */
    HP_CUDA_VECTOR   /* (unit[0] x1[sample, c]) x0 */
} hp_cuda_point_kind;

enum { HP_CUDA_OWN = 4 };

typedef struct hp_cuda_point {
    int32_t kind;
    const void *x[2];
    void *y;
    hp_qparams of[2];
    hp_cuda_put put;
    hp_cuda_act act;
    int64_t pixels, channels; /* size of x0 */
    int64_t pitch, at;        /* layout of y: elements between pixels, its first channel */
    int64_t map;              /* vector: pixels per sample */
    float unit[2];
    const float *factor, *bias;                    /* affine: per channel; NULL: 1 and 0 */
    float own[HP_CUDA_OWN], own_bias[HP_CUDA_OWN]; /* raw pixels' */
    hp_cuda_recode recode;                         /* convert */
} hp_cuda_point;
cudaError_t hp_cuda_point_run(const hp_cuda_point *p, cudaStream_t s);

/* --- infer/map.cu: pixels from other pixels --- */

/* One axis of a mean, as in exec/device/kernels/loops_pool.inc. */
typedef struct hp_cuda_mean_axis {
    int64_t in, in0, full_in, out0, full_out; /* lengths and starts of the boxes, lengths of the maps */
    int64_t kernel, stride, pad, end;         /* kernel 0: adaptive; end: where padding ends */
    bool counts_pad;
} hp_cuda_mean_axis;

typedef struct hp_cuda_map {
    const void *x;
    void *y;
    hp_qparams of;
    hp_cuda_put put;
    hp_cuda_act act;
    hp_shape shape;
    hp_cuda_recode recode;
    hp_cuda_mean_axis rows, cols; /* mean */
    hp_resampling down, along;    /* resize */
} hp_cuda_map;
cudaError_t hp_cuda_pad_map(const hp_cuda_map *m, cudaStream_t s);
cudaError_t hp_cuda_max_map(const hp_cuda_map *m, cudaStream_t s);
cudaError_t hp_cuda_mean_map(const hp_cuda_map *m, cudaStream_t s);
cudaError_t hp_cuda_resize_map(const hp_cuda_map *m, cudaStream_t s);
cudaError_t hp_cuda_softmax_map(const hp_cuda_map *m, cudaStream_t s);

/* --- infer/score.cu --- */

/* Adds the rows' losses and hits to the metric (exec/device/metric.h). */
typedef struct hp_cuda_scores {
    const float *logits;
    const int32_t *labels;
    int64_t rows;
    int32_t classes;
    double *metric;
} hp_cuda_scores;
cudaError_t hp_cuda_score(const hp_cuda_scores *l, cudaStream_t s);

/* --- matrix layers --- */

/* How sums are finished: the formula of exec/device/kernels/panel.h. */
typedef struct hp_cuda_finish {
    void *y;
    hp_cuda_put put;
    hp_cuda_act act;
    bool adds;  /* y holds the addend */
    bool units; /* bytes from bytes, with a clamp */
    float add_scale;
    uint8_t lo8, hi8;
} hp_cuda_finish;

/* A convolution, transposed or not, as sums over taps. The weights of an output (group, output) are a row of
 * `weight_row` elements; tap (ky, kx) and input i are at ky * row_taps + kx * tap + i. Float weights of
 * transposed layers are laid out (group, input, tap, output). */
typedef struct hp_cuda_taps {
    const void *x, *weight;
    hp_shape shape;
    bool transposed;
    int32_t groups, outs, ins; /* number of groups; outputs and inputs per group */
    int32_t tap, row_taps;
    int64_t weight_row;
} hp_cuda_taps;

/* infer/real.cu: float32 sums over any float store, in the order of taps. */
typedef struct hp_cuda_real {
    hp_cuda_taps taps;
    int32_t x_dtype; /* type of x and of weight */
    const float *bias;
    hp_cuda_finish finish;
} hp_cuda_real;
cudaError_t hp_cuda_conv_real(const hp_cuda_real *c, cudaStream_t s);
/* y = act(y + bias), bias NULL: 0. Completes a library's convolution. */
cudaError_t hp_cuda_finish_real(const hp_cuda_finish *f, const float *bias, int64_t pixels, int32_t channels,
                                cudaStream_t s);

/* A sample's state when quantised at run time, in device memory. */
typedef struct hp_cuda_sample {
    uint32_t range[3]; /* maxima of -x and of x as ordered integers; is any x not finite? */
    float scale;
    int32_t zero;
} hp_cuda_sample;

/* infer/cuda_infer_bytes.cu: u8 x s8 on tensor cores; infer/cuda_infer_depthwise.cu. */
typedef struct hp_cuda_bytes {
    hp_cuda_taps taps;
    uint8_t zero;                 /* zero point, the value of padding; 0 for raw pixels */
    const hp_cuda_sample *sample; /* provides the zero point; or NULL */
    const int32_t *total;         /* sum of each output's weights: sums start from -zero * total; or NULL */
    const float *scale, *shift;   /* per output */
    /* raw pixels only, whose zero points are not integers: each tap's share (tap, output), and the shift of
     * pixels with all taps; else NULL */
    const float *share, *shift_inside;
    hp_cuda_finish finish;
} hp_cuda_bytes;
cudaError_t hp_cuda_conv_bytes(const hp_cuda_bytes *c, cudaStream_t s);
/* Depthwise: one input and one output per group; weights (tap, channel). */
cudaError_t hp_cuda_depthwise_bytes(const hp_cuda_bytes *c, cudaStream_t s);
/* infer/cuda_infer_dynamic.cu: a sample's range, scale and bytes, and the layer's scales times its own
 * (exec/device/infer/infer_dynamic.h). */
typedef struct hp_cuda_quantise {
    const float *x;
    uint8_t *to;
    int64_t elems;
    hp_cuda_sample *sample;
    const float *weight_scale;
    float *scale;
    int64_t outs;
} hp_cuda_quantise;
cudaError_t hp_cuda_quantise_sample(const hp_cuda_quantise *q, cudaStream_t s);

#ifdef __cplusplus
}
#endif

#endif
