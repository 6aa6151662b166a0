/* cuda_gather.cu - elements gathered by position (networks/graph/graph_gather.h), and the transpose: each
 * input element adds up, in float64 and in a fixed order, the gradients of the outputs that read it.
 * Definition: exec/device/ref/ref_gather.c. */
#include "exec/cuda/train/cuda_train_kernel.h"
#include "exec/cuda/runtime/warp.h"

template <typename T> static __global__ void gather(T *y, const T *x, hp_cuda_gather g, int64_t n) {
    const hp_shape &s = g.shape;
    const hp_gathering &r = g.rule;
    for (int64_t i = thread_index(); i < n; i += all_threads()) {
        const int64_t pixel = quotient(i, s.oc), line = quotient(pixel, s.ow), sample = quotient(line, s.oh);
        const int64_t row = hp_gather_row(r.border, s.oy0 + line - sample * s.oh - r.pad_h,
                                          (int64_t)s.full.ih * r.kh),
                      col = hp_gather_row(r.border, s.ox0 + pixel - line * s.ow - r.pad_w,
                                          (int64_t)s.full.iw * r.kw);
        const int64_t iy = quotient(row, r.kh), ix = quotient(col, r.kw),
                      block = (row - iy * r.kh) * r.kw + col - ix * r.kw;
        const int64_t c = hp_gather_channel(&r, block * r.out_c + s.oc0 + i - pixel * s.oc) - g.first;
        y[i] = x[((sample * s.ih + iy - s.iy0) * s.iw + ix - s.ix0) * s.ic + c];
    }
}

/* --- the transpose --- */

/* An element of the input: its position in the whole map, and its sample's outputs. */
template <typename T> struct Source {
    const T *dy;
    int64_t y, x, c;
};

/* Rows lo .. hi - 1 of the output's box that read row `row` of n, on one side of the map. */
static __device__ inline hp_gather_rows rows_here(int32_t border, int64_t row, int64_t n, int side,
                                                  int64_t before, int64_t made) {
    hp_gather_rows at = hp_gather_readers(border, row, n, side);
    at.lo = at.lo + before > 0 ? at.lo + before : 0;
    at.hi = at.hi + before < made ? at.hi + before : made;
    return at;
}

/* Sums over the readers of one pixel of the element's block, for output channel c of the box: every `lanes`th
 * one from the `lane`th on. */
template <typename T>
static __device__ inline double sum_pixels(const hp_cuda_gather &g, const Source<T> &of, int64_t row,
                                           int64_t col, int64_t c, int32_t lane, int32_t lanes) {
    const hp_shape &s = g.shape;
    const hp_gathering &r = g.rule;
    const int sides = r.border == (int32_t)HP_BORDER_NONE ? 1 : (int)HP_MAP_SIDES;
    double sum = 0;
    for (int i = 0; i < sides; i++) {
        const hp_gather_rows down = rows_here(r.border, row, (int64_t)s.full.ih * r.kh,
                                              (HP_IN_MAP + i) % HP_MAP_SIDES, (int64_t)r.pad_h - s.oy0, s.oh);
        for (int j = 0; j < sides && down.lo < down.hi; j++) {
            const hp_gather_rows along =
                rows_here(r.border, col, (int64_t)s.full.iw * r.kw, (HP_IN_MAP + j) % HP_MAP_SIDES,
                          (int64_t)r.pad_w - s.ox0, s.ow);
            const int64_t wide = along.hi - along.lo, all = wide > 0 ? (down.hi - down.lo) * wide : 0;
            for (int64_t k = lane; k < all; k += lanes) {
                const int64_t y = quotient(k, (int32_t)wide);
                sum += (double)real(of.dy[((down.lo + y) * s.ow + along.lo + k - y * wide) * s.oc + c]);
            }
        }
    }
    return sum;
}

/* Sums over the readers of place i in the sequence of channels. */
template <typename T>
static __device__ inline double sum_place(const hp_cuda_gather &g, const Source<T> &of, int64_t i,
                                          int32_t lane, int32_t lanes) {
    const hp_gathering &r = g.rule;
    const int64_t block = i / r.out_c, c = i - block * r.out_c - g.shape.oc0;
    if (c < 0 || c >= g.shape.oc) return 0;
    return sum_pixels(g, of, of.y * r.kh + block / r.kw, of.x * r.kw + block % r.kw, c, lane, lanes);
}

/* The sequence is a matrix with `groups` columns; place (u, v). The loop runs over the shorter side, and the
 * other index follows. If that has a step of 0, all of its indices match and lanes share them. */
template <typename T, int LANES>
static __device__ inline double sum_readers(const hp_cuda_gather &g, const Source<T> &of, int32_t lane) {
    const hp_gathering &r = g.rule;
    const int64_t rows = (int64_t)r.kh * r.kw * r.out_c / r.groups;
    const bool by_column = r.groups <= rows;
    const int64_t tried = by_column ? r.groups : rows, others = by_column ? rows : r.groups,
                  unit = by_column ? 1 : r.groups, other_unit = by_column ? r.groups : 1;
    const int32_t step = by_column ? r.step : r.step_outer, other_step = by_column ? r.step_outer : r.step;
    double sum = 0;
    for (int64_t u = 0; u < tried; u++) {
        const int64_t left = of.c - r.first - u * step;
        if (left < 0 || (other_step == 0 ? left > 0 : left % other_step > 0)) continue;
        const int64_t v = other_step == 0 ? 0 : left / other_step;
        if (other_step > 0 && v < others) sum += sum_place(g, of, u * unit + v * other_unit, lane, LANES);
        for (int64_t k = lane; other_step == 0 && k < others; k += LANES)
            sum += sum_place(g, of, u * unit + k * other_unit, 0, 1);
    }
    return sum;
}

/* LANES threads per input element: a warp where many outputs read one. */
template <typename T, int LANES>
static __global__ void gather_backward(T *dx, const T *dy, hp_cuda_gather g, int64_t n) {
    const hp_shape &s = g.shape;
    const int32_t lane = (int32_t)(threadIdx.x % LANES);
    for (int64_t i = thread_index() / LANES; i < n; i += all_threads() / LANES) {
        const int64_t pixel = quotient(i, s.ic), line = quotient(pixel, s.iw), sample = quotient(line, s.ih);
        const Source<T> of = {dy + sample * s.oh * s.ow * s.oc, s.iy0 + line - sample * s.ih,
                              s.ix0 + pixel - line * s.iw, g.first + i - pixel * s.ic};
        double sum = sum_readers<T, LANES>(g, of, lane);
        if constexpr (LANES > 1) sum = warp_sum(sum);
        if (lane == 0) round_to(dx + i, (float)sum);
    }
}

/* --- launchers --- */

cudaError_t hp_cuda_gather_forward(hp_dtype t, void *y, const void *x, const hp_cuda_gather *g,
                                   cudaStream_t s) {
    const int64_t n = g->shape.n * g->shape.oh * g->shape.ow * g->shape.oc;
    if (n == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(gather<T>, blocks_for(n), THREADS, s, (T *)y, (const T *)x, *g, n);
    });
}

cudaError_t hp_cuda_gather_backward(hp_dtype t, void *dx, const void *dy, const hp_cuda_gather *g,
                                    cudaStream_t s) {
    enum { MANY = 8 }; /* average number of readers that makes it a warp */
    const int64_t n = g->shape.n * g->shape.ih * g->shape.iw * g->shape.ic,
                  outs = g->shape.n * g->shape.oh * g->shape.ow * g->shape.oc;
    if (n == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        if (outs / n >= MANY)
            return HP_LAUNCH((gather_backward<T, WARP>), blocks_for(n * WARP), THREADS, s, (T *)dx,
                             (const T *)dy, *g, n);
        return HP_LAUNCH((gather_backward<T, 1>), blocks_for(n), THREADS, s, (T *)dx, (const T *)dy, *g, n);
    });
}
