/* pixels.h - how sums of bytes begin and end: the zero point's share in them, which is no integer of
 * raw pixels, and what is stored; see exec/device/kernels/panel.h and exec/device/cpu/class.c. */
#ifndef HP_INFER_PIXELS_H
#define HP_INFER_PIXELS_H

#include "exec/cuda/infer/taps.h"

static __device__ inline int32_t zero_of(const hp_cuda_bytes &c) {
    return c.sample ? c.sample->zero : c.zero;
}

/* All 32 bits wrap: the end is exact where the sum of (q - zero) * w is within them. */
static __device__ inline int32_t whole_sum(const hp_cuda_bytes &c, int32_t zero, int64_t output,
                                           int32_t sum) {
    return c.total ? (int32_t)((uint32_t)sum - (uint32_t)zero * (uint32_t)c.total[output]) : sum;
}

static __device__ inline bool has_all_taps(const hp_cuda_taps &t, const Pixel &p) {
    const hp_shape &s = t.shape;
    return !t.transposed && p.y >= 0 && p.x >= 0 && p.y + (s.kh - 1) * s.dh < s.ih &&
           p.x + (s.kw - 1) * s.dw < s.iw;
}

/* Of a pixel of an image at its border: the taps that are inside, in order. */
static __device__ inline float border_shift(const hp_cuda_bytes &c, const Pixel &p, int64_t output) {
    const hp_shape &s = c.taps.shape;
    const int64_t outs = (int64_t)c.taps.groups * c.taps.outs;
    float share = 0;
    for (int32_t ky = 0; ky < s.kh; ky++)
        for (int32_t kx = 0; kx < s.kw; kx++)
            if (element_under(c.taps, p, {ky, 0, kx, 0}, 0) >= 0)
                share = __fadd_rn(share, c.share[((int64_t)ky * s.kw + kx) * outs + output]);
    return __fmaf_rn(-c.scale[output], share, c.shift[output]);
}

static __device__ inline float shift_of(const hp_cuda_bytes &c, const Pixel &p, int64_t output) {
    if (!c.share) return c.shift[output];
    return has_all_taps(c.taps, p) ? c.shift_inside[output] : border_shift(c, p, output);
}

#endif
