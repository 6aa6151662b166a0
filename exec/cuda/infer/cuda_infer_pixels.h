/* cuda_infer_pixels.h - the beginning and end of sums of bytes: the zero point's share, which is not an
 * integer for raw pixels, and the stored value; see exec/device/kernels/panel.h and
 * exec/device/cpu/cpu_class.c. */
#ifndef HP_CUDA_INFER_PIXELS_H
#define HP_CUDA_INFER_PIXELS_H

#include "exec/cuda/infer/taps.h"

static __device__ inline int32_t zero_of(const hp_cuda_bytes &c) {
    return c.sample ? c.sample->zero : c.zero;
}

/* All 32 bits wrap: the result is exact if the sum of (q - zero) * w fits. */
static __device__ inline int32_t whole_sum(const hp_cuda_bytes &c, int32_t zero, int64_t output,
                                           int32_t sum) {
    return c.total ? (int32_t)((uint32_t)sum - (uint32_t)zero * (uint32_t)c.total[output]) : sum;
}

static __device__ inline bool has_all_taps(const hp_cuda_taps &t, const Pixel &p) {
    const hp_shape &s = t.shape;
    return !t.transposed && p.y >= 0 && p.x >= 0 && p.y + (s.kh - 1) * s.dh < s.ih &&
           p.x + (s.kw - 1) * s.dw < s.iw;
}

/* Taps lo .. hi - 1 of `kernel` read an input. `from`: input under tap 0. */
typedef struct Taps {
    int32_t lo, hi;
} Taps;

static __device__ inline Taps taps_inside(int32_t from, int32_t dilation, int32_t inputs, int32_t kernel) {
    const int32_t lo = from < 0 ? (dilation - 1 - from) / dilation : 0,
                  hi = from < inputs ? (inputs - 1 - from) / dilation + 1 : 0;
    return {lo, hi < kernel ? hi : kernel};
}

/* Taps that lie inside the map. */
typedef struct Inside {
    Taps rows, columns;
} Inside;

static __device__ inline Inside inside_of(const hp_cuda_taps &t, const Pixel &p) {
    const hp_shape &s = t.shape;
    if (t.transposed) return {{0, s.kh}, {0, s.kw}}; /* not contiguous: a tap in between may not read */
    return {taps_inside(p.y, s.dh, s.ih, s.kh), taps_inside(p.x, s.dw, s.iw, s.kw)};
}

static __device__ inline bool same(const Inside &a, const Inside &b) {
    return a.rows.lo == b.rows.lo && a.rows.hi == b.rows.hi && a.columns.lo == b.columns.lo &&
           a.columns.hi == b.columns.hi;
}

/* The shift of a pixel at an image's border: adds the shares of the inside taps in order, with several loads
 * in flight. A tap outside adds zero, which changes no sum. */
static __device__ inline float border_shift(const hp_cuda_bytes &c, const Pixel &p, const Inside &in,
                                            int64_t output) {
    enum { AHEAD = 8 };
    const int64_t outs = (int64_t)c.taps.groups * c.taps.outs;
    float share = 0;
    for (int32_t ky = in.rows.lo; ky < in.rows.hi; ky++)
        for (int32_t first = in.columns.lo; first < in.columns.hi; first += AHEAD) {
            float part[AHEAD];
            HP_UNROLL
            for (int k = 0; k < AHEAD; k++) {
                const int32_t kx = first + k;
                const bool reads = kx < in.columns.hi &&
                                   (!c.taps.transposed || element_under(c.taps, p, {ky, 0, kx, 0}, 0) >= 0);
                part[k] = reads ? c.share[((int64_t)ky * c.taps.shape.kw + kx) * outs + output] : 0.0f;
            }
            HP_UNROLL
            for (int k = 0; k < AHEAD; k++) share = __fadd_rn(share, part[k]);
        }
    return __fmaf_rn(-c.scale[output], share, c.shift[output]);
}

static __device__ inline float shift_of(const hp_cuda_bytes &c, const Pixel &p, int64_t output) {
    if (!c.share) return c.shift[output];
    return has_all_taps(c.taps, p) ? c.shift_inside[output]
                                   : border_shift(c, p, inside_of(c.taps, p), output);
}

#endif
