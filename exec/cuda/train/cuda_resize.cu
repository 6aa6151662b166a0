/* cuda_resize.cu - interpolation and its transpose: each thread adds up the gradients of the outputs that
 * read its pixel, in their order. Definition: exec/device/ref/ref_resize.c. */
#include "exec/cuda/train/cuda_train_kernel.h"

template <typename T> static __global__ void resize(T *y, const T *x, hp_cuda_resize r, int64_t n) {
    const hp_shape &s = r.shape;
    for (int64_t i = thread_index(); i < n; i += all_threads()) {
        const Place o = place_of(i, s.oh, s.ow, s.oc);
        const hp_taps rows = hp_taps_at(&r.down, s.oy0 + o.y), cols = hp_taps_at(&r.along, s.ox0 + o.x);
        float sum = 0;
        for (int j = 0; j < rows.n; j++)
            for (int k = 0; k < cols.n; k++)
                sum += (float)(rows.share[j] * cols.share[k]) *
                       real(x[((o.n * s.ih + rows.at[j] - s.iy0) * s.iw + cols.at[k] - s.ix0) * s.ic + o.c]);
        round_to(y + i, sum);
    }
}

/* The first of n outputs, counted from `first`, whose last tap is not before the item. */
static __device__ inline int32_t first_reader(const hp_resampling &r, int32_t first, int32_t n,
                                              int32_t item) {
    int32_t lo = 0, hi = n;
    while (lo < hi) {
        const int32_t mid = (lo + hi) / 2;
        if (hp_resample_at(&r, first + mid).hi < item)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static __device__ inline double share_of(const hp_taps &t, int32_t item) {
    double sum = 0;
    for (int k = 0; k < t.n; k++)
        if (t.at[k] == item) sum += t.share[k];
    return sum;
}

template <typename T>
static __global__ void resize_backward(T *dx, const T *dy, hp_cuda_resize r, int64_t n) {
    const hp_shape &s = r.shape;
    for (int64_t i = thread_index(); i < n; i += all_threads()) {
        const Place o = place_of(i, s.ih, s.iw, s.ic);
        const int32_t iy = s.iy0 + o.y, ix = s.ix0 + o.x;
        BlockedSum<1> sum;
        for (int32_t y = first_reader(r.down, s.oy0, s.oh, iy); y < s.oh; y++) {
            const hp_taps rows = hp_taps_at(&r.down, s.oy0 + y);
            if (rows.at[0] > iy) break;
            const double share = share_of(rows, iy);
            for (int32_t x = first_reader(r.along, s.ox0, s.ow, ix); x < s.ow; x++) {
                const hp_taps cols = hp_taps_at(&r.along, s.ox0 + x);
                if (cols.at[0] > ix) break;
                const float part[1] = {(float)(share * share_of(cols, ix)) *
                                       real(dy[((o.n * s.oh + y) * s.ow + x) * s.oc + o.c])};
                sum.add(part);
            }
        }
        round_to(dx + i, sum.total(0));
    }
}

cudaError_t hp_cuda_resize_forward(hp_dtype t, void *y, const void *x, const hp_cuda_resize *r,
                                   cudaStream_t s) {
    const int64_t n = r->shape.n * r->shape.oh * r->shape.ow * r->shape.oc;
    if (n == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(resize<T>, blocks_for(n), THREADS, s, (T *)y, (const T *)x, *r, n);
    });
}

cudaError_t hp_cuda_resize_backward(hp_dtype t, void *dx, const void *dy, const hp_cuda_resize *r,
                                    cudaStream_t s) {
    const int64_t n = r->shape.n * r->shape.ih * r->shape.iw * r->shape.ic;
    if (n == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(resize_backward<T>, blocks_for(n), THREADS, s, (T *)dx, (const T *)dy, *r, n);
    });
}
