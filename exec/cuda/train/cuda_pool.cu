/* cuda_pool.cu - maximum, mean and adaptive mean pooling. A thread computes V channels of a pixel. Backward,
 * it gathers the gradients of all windows that contain its pixel, in their order, so no two threads add to
 * the same element. Definition: exec/device/ref/ref_pool.c. */
#include "exec/cuda/train/sums.h"

static __device__ inline int64_t element(int64_t n, int32_t h, int32_t w, int32_t channels, int32_t y,
                                         int32_t x, int32_t c) {
    return ((n * h + y) * w + x) * channels + c;
}

/* --- maximum --- */

template <typename T, int V>
static __global__ void maximum(T *y, uint8_t *save, const T *x, hp_shape s, int64_t elems) {
    for (int64_t i = thread_index() * V; i < elems; i += all_threads() * V) {
        const Place o = place_of(i, s.oh, s.ow, s.oc);
        float best[V] = {}, v[V];
        Pack<uint8_t, V> tap = {};
        bool found = false;
        for (int t = 0; t < s.kh * s.kw; t++) {
            const int32_t iy = o.y * s.sh - s.ph + t / s.kw * s.dh, ix = o.x * s.sw - s.pw + t % s.kw * s.dw;
            if (iy < 0 || iy >= s.ih || ix < 0 || ix >= s.iw) continue;
            load<T, V>(v, x, element(o.n, s.ih, s.iw, s.ic, iy, ix, o.c));
            for (int j = 0; j < V; j++) {
                if (found && !(v[j] > best[j])) continue;
                best[j] = v[j];
                tap.at[j] = (uint8_t)t;
            }
            found = true;
        }
        store<T, V>(y, i, best);
        if (save) *reinterpret_cast<Pack<uint8_t, V> *>(save + i) = tap;
    }
}

/* The output whose tap k reads pixel `i`, or -1. */
static __device__ inline int32_t output_of(int32_t i, int32_t pad, int32_t tap, int32_t stride, int32_t n) {
    const int32_t from = i + pad - tap;
    return from >= 0 && from % stride == 0 && from / stride < n ? from / stride : -1;
}

template <typename T, int V>
static __global__ void maximum_backward(T *dx, const uint8_t *save, const T *dy, hp_shape s, int64_t elems) {
    for (int64_t i = thread_index() * V; i < elems; i += all_threads() * V) {
        const Place p = place_of(i, s.ih, s.iw, s.ic);
        float sum[V] = {}, g[V];
        for (int t = s.kh * s.kw - 1; t >= 0; t--) { /* outputs in ascending order */
            const int32_t oy = output_of(p.y, s.ph, t / s.kw * s.dh, s.sh, s.oh),
                          ox = output_of(p.x, s.pw, t % s.kw * s.dw, s.sw, s.ow);
            if (oy < 0 || ox < 0) continue;
            const int64_t o = element(p.n, s.oh, s.ow, s.oc, oy, ox, p.c);
            const Pack<uint8_t, V> tap = *reinterpret_cast<const Pack<uint8_t, V> *>(save + o);
            load<T, V>(g, dy, o);
            for (int j = 0; j < V; j++)
                if (tap.at[j] == t) sum[j] += g[j];
        }
        store<T, V>(dx, i, sum);
    }
}

/* --- mean --- */

/* One axis of a pooling layer between two boxes: lengths and first elements of the boxes,
 * lengths of the maps. */
struct Axis {
    int32_t in, in0, full_in, out, out0, full_out, kernel, stride, pad;
    bool adaptive, count_pad;
};

static __device__ inline void axes_of(const hp_cuda_pool &p, Axis &y, Axis &x) {
    const hp_shape &s = p.shape;
    y = {s.ih, s.iy0, s.full.ih, s.oh, s.oy0, s.full.oh, s.kh, s.sh, p.pad_h, p.adaptive, p.count_pad};
    x = {s.iw, s.ix0, s.full.iw, s.ow, s.ox0, s.full.ow, s.kw, s.sw, p.pad_w, p.adaptive, p.count_pad};
}

/* Elements of an output's window within the box, and the count that its mean divides by. */
struct Window {
    int32_t first, end, counted;
};

static __device__ inline Window window_of(const Axis &a, int32_t output) {
    const int64_t o = (int64_t)a.out0 + output;
    int64_t from = o * a.stride - a.pad, to = from + a.kernel;
    if (to > a.full_in + a.pad) to = a.full_in + a.pad;
    if (a.adaptive) {
        from = o * a.full_in / a.full_out;
        to = ((o + 1) * a.full_in + a.full_out - 1) / a.full_out;
    }
    const int32_t padded = (int32_t)(to - from);
    const int32_t first = from > a.in0 ? (int32_t)(from - a.in0) : 0;
    const int32_t end = to - a.in0 < a.in ? (int32_t)(to - a.in0) : a.in;
    return {first, end, a.count_pad && !a.adaptive ? padded : end - first};
}

/* Outputs first .. end-1 of the box: all whose windows contain element `i` of the box. */
static __device__ inline Window outputs_of(const Axis &a, int32_t i) {
    const int64_t at = (int64_t)a.in0 + i;
    int64_t first = at + a.pad - a.kernel + 1, last = (at + a.pad) / a.stride;
    first = first > 0 ? (first + a.stride - 1) / a.stride : 0;
    if (a.adaptive) { /* solves o * in < (i + 1) * out and (o + 1) * in > i * out */
        first = at * a.full_out / a.full_in;
        last = ((at + 1) * a.full_out + a.full_in - 1) / a.full_in - 1;
    }
    first = first > a.out0 ? first - a.out0 : 0;
    last = last - a.out0 < a.out - 1 ? last - a.out0 : a.out - 1;
    return {(int32_t)first, (int32_t)last + 1, 0};
}

template <typename T, int V> static __global__ void mean(T *y, const T *x, hp_cuda_pool p, int64_t elems) {
    const hp_shape &s = p.shape;
    Axis down, across;
    axes_of(p, down, across);
    for (int64_t i = thread_index() * V; i < elems; i += all_threads() * V) {
        const Place o = place_of(i, s.oh, s.ow, s.oc);
        const Window h = window_of(down, o.y), w = window_of(across, o.x);
        const float count = (float)h.counted * (float)w.counted;
        float v[V];
        BlockedSum<V> sum;
        for (int32_t iy = h.first; iy < h.end; iy++)
            for (int32_t ix = w.first; ix < w.end; ix++) {
                load<T, V>(v, x, element(o.n, s.ih, s.iw, s.ic, iy, ix, o.c));
                sum.add(v);
            }
        for (int j = 0; j < V; j++) v[j] = sum.total(j) / count;
        store<T, V>(y, i, v);
    }
}

template <typename T, int V>
static __global__ void mean_backward(T *dx, const T *dy, hp_cuda_pool p, int64_t elems) {
    const hp_shape &s = p.shape;
    Axis down, across;
    axes_of(p, down, across);
    for (int64_t i = thread_index() * V; i < elems; i += all_threads() * V) {
        const Place at = place_of(i, s.ih, s.iw, s.ic);
        const Window h = outputs_of(down, at.y), w = outputs_of(across, at.x);
        float g[V];
        BlockedSum<V> sum;
        for (int32_t oy = h.first; oy < h.end; oy++)
            for (int32_t ox = w.first; ox < w.end; ox++) {
                const float count = (float)window_of(down, oy).counted * (float)window_of(across, ox).counted;
                load<T, V>(g, dy, element(at.n, s.oh, s.ow, s.oc, oy, ox, at.c));
                for (int j = 0; j < V; j++) g[j] /= count;
                sum.add(g);
            }
        for (int j = 0; j < V; j++) g[j] = sum.total(j);
        store<T, V>(dx, i, g);
    }
}

/* --- mean over a large map: few outputs, so many threads share each --- */

template <typename T, int V> struct RowTerm {
    const T *x;
    int32_t channels;
    __device__ void add(int64_t r, int32_t c, double (&sum)[V], double (&)[V]) const {
        float v[V];
        load<T, V>(v, x, r * channels + c);
        for (int j = 0; j < V; j++) sum[j] += (double)v[j];
    }
};

template <typename T> struct MeanEnd {
    T *y;
    double rows;
    __device__ void take(int32_t c, double sum, double) const {
        round_to(&y[c], (float)(sum / rows));
    }
};

/* --- launchers --- */

static int64_t in_elems(const hp_shape *s) {
    return s->n * s->ih * s->iw * s->ic;
}

static int64_t out_elems(const hp_shape *s) {
    return s->n * s->oh * s->ow * s->oc;
}

cudaError_t hp_cuda_maxpool(hp_dtype t, void *y, uint8_t *save, const void *x, const hp_cuda_pool *p,
                            cudaStream_t s) {
    const int64_t n = out_elems(&p->shape);
    if (n == 0) return cudaSuccess;
    return with_elements(t, p->shape.oc, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        return HP_LAUNCH((maximum<T, V>), blocks_for(n / V), THREADS, s, (T *)y, save, (const T *)x, p->shape,
                         n);
    });
}

cudaError_t hp_cuda_maxpool_backward(hp_dtype t, void *dx, const uint8_t *save, const void *dy,
                                     const hp_cuda_pool *p, cudaStream_t s) {
    const int64_t n = in_elems(&p->shape);
    if (n == 0) return cudaSuccess;
    return with_elements(t, p->shape.oc, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        return HP_LAUNCH((maximum_backward<T, V>), blocks_for(n / V), THREADS, s, (T *)dx, save,
                         (const T *)dy, p->shape, n);
    });
}

cudaError_t hp_cuda_meanpool(hp_dtype t, void *y, const void *x, const hp_cuda_pool *p, cudaStream_t s) {
    const int64_t n = out_elems(&p->shape);
    if (n == 0) return cudaSuccess;
    return with_elements(t, p->shape.oc, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        return HP_LAUNCH((mean<T, V>), blocks_for(n / V), THREADS, s, (T *)y, (const T *)x, *p, n);
    });
}

cudaError_t hp_cuda_meanpool_backward(hp_dtype t, void *dx, const void *dy, const hp_cuda_pool *p,
                                      cudaStream_t s) {
    const int64_t n = in_elems(&p->shape);
    if (n == 0) return cudaSuccess;
    return with_elements(t, p->shape.oc, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        return HP_LAUNCH((mean_backward<T, V>), blocks_for(n / V), THREADS, s, (T *)dx, (const T *)dy, *p, n);
    });
}

cudaError_t hp_cuda_mean_rows(hp_dtype t, void *y, const void *x, int64_t samples, int64_t rows,
                              int32_t channels, double *partial, cudaStream_t s) {
    return with_elements(t, channels, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        for (int64_t n = 0; n < samples; n++) {
            const RowTerm<T, V> term = {(const T *)x + n * rows * channels, channels};
            const MeanEnd<T> end = {(T *)y + n * channels, (double)rows};
            const cudaError_t e = column_sums<V>(term, end, rows, channels, partial, s);
            if (e != cudaSuccess) return e;
        }
        return cudaSuccess;
    });
}
