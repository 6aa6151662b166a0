/* taps.h - a convolution as an implicit matrix product. Rows are output pixels; columns are the inputs under
 * their taps, in the order of a packed row of weights. */
#ifndef HP_TAPS_H
#define HP_TAPS_H

#include "exec/cuda/infer/cuda_infer_kernel.h"

/* An output pixel: the start of its sample, and the input position under tap (0, 0). */
typedef struct Pixel {
    int64_t image;
    int32_t y, x;
} Pixel;

static __device__ inline Pixel pixel_of(const hp_cuda_taps &t, int64_t i) {
    const hp_shape &s = t.shape;
    const int64_t row = quotient(i, s.ow), n = quotient(row, s.oh);
    const int32_t y = (int32_t)(row - n * s.oh), x = (int32_t)(i - row * s.ow);
    const int64_t image = n * s.ih * s.iw * s.ic;
    return t.transposed ? Pixel{image, y + s.ph, x + s.pw} : Pixel{image, y * s.sh - s.ph, x * s.sw - s.pw};
}

/* The input under a tap along one axis; -1: padding, or between the inputs of a transposed convolution. */
static __device__ inline int32_t input_under(const hp_cuda_taps &t, int32_t from, int32_t ahead,
                                             int32_t stride, int32_t inputs) {
    int32_t i = from + ahead;
    if (t.transposed) {
        i = from - ahead;
        if (i < 0 || i % stride) return -1;
        i /= stride;
    }
    return i >= 0 && i < inputs ? i : -1;
}

/* Column k: its tap and input; `e` counts along a row of taps. */
typedef struct Tap {
    int32_t ky, e, kx, i;
} Tap;

/* A row of weights has fewer than 2^31: a 64-bit division would need the registers of the sums. */
static __device__ inline Tap tap_of(const hp_cuda_taps &t, int64_t k) {
    const int32_t ky = (int32_t)((uint32_t)k / (uint32_t)t.row_taps), e = (int32_t)k - ky * t.row_taps,
                  kx = e / t.tap;
    return {ky, e, kx, e - kx * t.tap};
}

static __device__ inline void advance(const hp_cuda_taps &t, Tap &a, int32_t by) {
    a.e += by;
    a.i += by;
    if (a.i >= t.tap) {
        a.i = 0;
        a.kx++;
    }
    if (a.e >= t.row_taps) a = {a.ky + 1, 0, 0, 0};
}

/* Is it padding of the weights? Those weights are zero, so the input read there does not matter. */
static __device__ inline bool is_filling(const hp_cuda_taps &t, const Tap &a) {
    return a.ky >= t.shape.kh || a.kx >= t.shape.kw || a.i >= t.ins;
}

/* The element of x in group `g`; -1: outside the map. */
static __device__ inline int64_t element_under(const hp_cuda_taps &t, const Pixel &p, const Tap &a,
                                               int32_t g) {
    const hp_shape &s = t.shape;
    const int32_t y = input_under(t, p.y, a.ky * s.dh, s.sh, s.ih),
                  x = input_under(t, p.x, a.kx * s.dw, s.sw, s.iw);
    if (y < 0 || x < 0) return -1;
    return p.image + ((int64_t)y * s.iw + x) * s.ic + (int64_t)g * t.ins + a.i;
}

static inline __host__ __device__ int64_t pixels_of(const hp_cuda_taps &t) {
    return t.shape.n * t.shape.oh * t.shape.ow;
}

#endif
