/* kernels.h - the processor's kernels, chosen once by what it reports. Training kernels are float32.
 * Everything except convolution and matrix product is memory bound, so each is one or two passes over the
 * data. There are own convolutions where the library is slow or has none.
 *
 * kernels_f32.c, kernels_loops.c and kernels_panel.c are compiled once per instruction set (HP_ISA = base,
 * avx2, ...), each time filling one table. All tensors are dense (N, H, W, C). Sums have a fixed order: the
 * same input gives the same bits. */
#ifndef HP_KERNELS_H
#define HP_KERNELS_H

#include "exec/device/device_bind.h"

/* Elementwise kernels; the output may be one of the inputs. */
typedef struct hp_point_kernels {
    void (*clamp)(float *y, const float *x, int64_t n, hp_clamp k);
    void (*clamp_bwd)(float *dx, const float *dy, const float *y, int64_t n,
                      hp_clamp k); /* dy where lo < y < hi */
    /* Any activation (exec/device/device_act.h); dx = dy times its derivative at x. */
    void (*act)(int act, float *y, const float *x, int64_t n, float a, float b);
    void (*act_bwd)(int act, float *dx, const float *dy, const float *x, int64_t n, float a, float b);
    void (*add)(float *y, const float *a, const float *b, int64_t n, hp_clamp k);
    void (*accum)(float *dst, const float *src, int64_t n);
    void (*accum_wide)(double *dst, const float *src, int64_t n);
    void (*scale)(float *y, const float *x, const float *factor, int64_t n);
    /* Indexed by optimiser (exec/device/device_update.h); gradients are multiplied by a factor. */
    void (*update[HP_OPTIMIZERS])(float *w, const float *g, float *m, float *v, int64_t n, float factor,
                                  float decay, const hp_update_rates_f32 *rates);
    double (*squares)(const float *x, int64_t n); /* sum of squares, in float64 */
} hp_point_kernels;

/* Batch norm over `rows` pixels of `channels`. `tmp`: 2*channels floats. */
typedef struct hp_norm_kernels {
    /* sum[c], square[c] of x - shift, in float64. */
    void (*sums)(const float *x, const float *shift, int64_t rows, int channels, double *sum, double *square,
                 float *tmp);
    /* sum[c] += x, square[c] += x*x, entirely in float64: there is no shift that all ranks know. */
    void (*add_sums)(const float *x, int64_t rows, int channels, double *sum, double *square);
    /* y = clamp((x - mean)*scale + beta + r); r may be NULL. */
    void (*apply)(float *y, const float *x, const float *r, const float *mean, const float *scale,
                  const float *beta, int64_t rows, int channels, hp_clamp k);
    /* g = dy where lo < y < hi (y NULL: everywhere). Computes the sums of g and of g*(x - mean); stores g
     * if `keep` is given. */
    void (*bwd_sums)(const float *dy, const float *y, const float *x, const float *mean, int64_t rows,
                     int channels, hp_clamp k, float *keep, double *sum, double *dot, float *tmp);
    /* dx = scale*g - a - (x - mean)*b with per-channel scale, a, b. */
    void (*bwd_apply)(float *dx, const float *dy, const float *y, const float *x, const float *mean,
                      const float *scale, const float *a, const float *b, int64_t rows, int channels,
                      hp_clamp k);
} hp_norm_kernels;

/* Norms over a pixel's `ins` channels; outputs first .. first+outs-1 are computed. centred: layer norm, else
 * RMS norm. gamma, beta and gradients belong to the outputs. `tmp`: 2*outs floats. */
typedef struct hp_layernorm {
    int64_t pixels;
    int ins, first, outs;
    float eps;
    bool centred;
} hp_layernorm;

typedef struct hp_layernorm_kernels {
    void (*fwd)(float *y, const float *x, const float *gamma, const float *beta,
                const hp_layernorm *l); /* beta may be NULL */
    /* dx: for all inputs, may be NULL; dgamma and dbeta are overwritten. */
    void (*bwd)(float *dx, double *dgamma, double *dbeta, const float *dy, const float *x, const float *gamma,
                const hp_layernorm *l, float *tmp);
} hp_layernorm_kernels;

/* A rectangle of pixels of the whole map. */
typedef struct hp_rect {
    int32_t y0, x0, h, w;
} hp_rect;

/* One sample of a box with first pixel (y0, x0): data at `at`, `step` floats between
 * pixels. at NULL: absent. */
typedef struct hp_attend_map {
    float *at;
    int32_t y0, x0, w;
    int64_t step;
} hp_attend_map;

/* Attention of one head of one sample. */
typedef struct hp_attend {
    int32_t channels, from, to; /* channels of the head; range that the output has */
    int32_t map_w;              /* width of the whole map */
    float scale;
    bool causal; /* keys are then whole rows, from the first on */
    hp_rect queries, keys;
    hp_attend_map q, k, v, y, log_sum; /* log_sum: logarithm of the sum of weights before normalisation */
    hp_attend_map dy, dq, dk, dv;      /* dq, dk, dv are added to */
    const float *bias;                 /* at distance 0; rows of bias_w; NULL: none */
    double *dbias;                     /* added to */
    int32_t bias_w;
    const float
        *turn; /* per pixel of the whole map: cosines, then sines, of half a head's channels; NULL: none */
    float *scratch;  /* hp_attend_scratch floats (plan/memory/memory_device.h) */
    double *dq_sums; /* queries by channels, rounded up to HP_WINOGRAD_PANEL; of few keys: not read */
} hp_attend;

typedef struct hp_attend_kernels {
    void (*fwd)(const hp_attend *a);
    void (*bwd)(const hp_attend *a);
} hp_attend_kernels;

/* Windows of mean pooling along one axis: output o averages [edge[2*o], edge[2*o+1]) of the box, divided by
 * the product of both axes' `divisor`. */
typedef struct hp_windows {
    int32_t *edge;
    float *divisor;
} hp_windows;

typedef struct hp_pool_kernels {
    void (*max)(float *y, uint8_t *tap, const float *x, const hp_shape *s); /* tap NULL: not wanted */
    void (*max_bwd)(float *dx, const uint8_t *tap, const float *dy, const hp_shape *s);
    void (*mean)(float *y, const float *x, const hp_shape *s, const hp_windows *rows, const hp_windows *cols);
    void (*mean_bwd)(float *dx, const float *dy, const hp_shape *s, const hp_windows *rows,
                     const hp_windows *cols);
} hp_pool_kernels;

/* Sums over rows of channels: float32 sums span 64 rows, however many there are. Written, or
 * added to with `add`. */
typedef struct hp_sum_kernels {
    void (*rows)(float *sum, const float *x, int64_t rows, int channels, bool add);
    /* Sums rows first, next[first], next[next[first]], ... until a negative index. */
    void (*listed)(float *sum, const float *x, int32_t first, const int32_t *next, int channels, bool add);
} hp_sum_kernels;

/* Convolutions. Weights are canonical (O, I/groups, kh, kw) unless packed; bias may be NULL. Weight gradients
 * are written, or added to with `add`. */
typedef struct hp_conv_kernels {
    /* Winograd F(2x2, 3x3) for 3x3 kernels of stride 1; `scratch` and packs as
     * plan/memory/memory_device.c counts them. */
    void (*wino_pack)(float *pack, const float *w, int oc, int ic, bool backward);
    void (*wino)(float *y, const float *x, const float *pack, const float *bias, const hp_shape *s,
                 float *scratch);
    void (*wino_bwdw)(float *dw, const float *x, const float *dy, const hp_shape *s, bool add,
                      float *scratch);
    /* Weight gradient of an ungrouped convolution as a matrix product. */
    void (*gemm_bwdw)(float *dw, const float *x, const float *dy, const hp_shape *s, bool add,
                      float *scratch);
    /* Any shape, slowly. */
    void (*any)(float *y, const float *x, const float *w, const float *bias, const hp_shape *s);
    void (*any_bwd)(float *dx, const float *dy, const float *w, const hp_shape *s);
    void (*any_bwdw)(float *dw, const float *x, const float *dy, const hp_shape *s, bool add);
} hp_conv_kernels;

typedef struct hp_f32_kernels {
    const char *isa;
    hp_point_kernels point;
    hp_norm_kernels norm;
    hp_pool_kernels pool;
    hp_sum_kernels sum;
    hp_conv_kernels conv;
    hp_layernorm_kernels layernorm;
    hp_attend_kernels attend;
} hp_f32_kernels;

extern const hp_f32_kernels hp_f32_kernels_base, hp_f32_kernels_avx2, hp_f32_kernels_avx512;
extern const struct hp_infer_loops hp_infer_loops_base, hp_infer_loops_avx2, hp_infer_loops_avx512;
extern const struct hp_panel_kernels hp_panel_base, hp_panel_avx2, hp_panel_avx512, hp_panel_vnni,
    hp_panel_bf16;

typedef struct hp_kernels {
    const hp_f32_kernels *f32;            /* training */
    const struct hp_infer_loops *loops;   /* inference: exec/device/infer/infer_loops.h */
    const struct hp_panel_kernels *panel; /* inference's matrix products: panel.h */
} hp_kernels;

/* The best kernels for this processor. */
const hp_kernels *hp_kernels_pick(void);

#endif
