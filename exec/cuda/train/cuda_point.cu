/* cuda_point.cu - activations, sums, masks, dropout: one element at a time, limited by memory bandwidth. */
#include "exec/cuda/train/cuda_train_kernel.h"
#include "exec/device/device_act.h"

template <typename T, int V>
static __global__ void clamp(T *y, const T *x, const T *added, int64_t n, hp_clamp k) {
    for (int64_t i = thread_index() * V; i < n; i += all_threads() * V) {
        float v[V], a[V] = {};
        load<T, V>(v, x, i);
        if (added) load<T, V>(a, added, i);
        for (int j = 0; j < V; j++) v[j] = clamped(v[j] + a[j], k);
        store<T, V>(y, i, v);
    }
}

template <typename T, int V>
static __global__ void mask(T *dx0, T *dx1, const T *dy, const T *y, int64_t n, hp_clamp k) {
    for (int64_t i = thread_index() * V; i < n; i += all_threads() * V) {
        float g[V], out[V];
        load<T, V>(g, dy, i);
        if (y) load<T, V>(out, y, i);
        for (int j = 0; y && j < V; j++)
            if (!(out[j] > k.lo && out[j] < k.hi)) g[j] = 0;
        if (dx0) store<T, V>(dx0, i, g);
        if (dx1) store<T, V>(dx1, i, g);
    }
}

template <typename T, int V>
static __global__ void act_forward(int32_t act, T *y, const T *x, int64_t n, float a, float b) {
    for (int64_t i = thread_index() * V; i < n; i += all_threads() * V) {
        float v[V];
        load<T, V>(v, x, i);
        for (int j = 0; j < V; j++) v[j] = hp_act_of_f32(act, v[j], a, b);
        store<T, V>(y, i, v);
    }
}

template <typename T, int V>
static __global__ void act_backward(int32_t act, T *dx, const T *dy, const T *x, int64_t n, float a,
                                    float b) {
    for (int64_t i = thread_index() * V; i < n; i += all_threads() * V) {
        float g[V], v[V];
        load<T, V>(g, dy, i);
        load<T, V>(v, x, i);
        for (int j = 0; j < V; j++) g[j] *= hp_act_slope_of_f32(act, v[j], a, b);
        store<T, V>(dx, i, g);
    }
}

template <typename T, int V> static __global__ void accum(T *dst, const T *src, int64_t n) {
    for (int64_t i = thread_index() * V; i < n; i += all_threads() * V) {
        float a[V], b[V];
        load<T, V>(a, dst, i);
        load<T, V>(b, src, i);
        for (int j = 0; j < V; j++) a[j] += b[j];
        store<T, V>(dst, i, a);
    }
}

/* --- dropout: hp_dropout_row, element by element --- */

/* Word `word` of hp_philox (base/rng.c). */
static __device__ inline uint32_t philox(uint64_t key, uint64_t hi, uint64_t lo, int word) {
    uint32_t c[4] = {(uint32_t)lo, (uint32_t)(lo >> 32), (uint32_t)hi, (uint32_t)(hi >> 32)};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)p1;
        c[3] = (uint32_t)p0;
        c[0] = n0;
        c[2] = n2;
    }
    return c[word];
}

static __device__ inline bool dropped(const hp_cuda_dropout &d, const hp_cuda_step *step, int64_t i) {
    const hp_shape &g = d.shape;
    const int64_t pixel = quotient(i, g.oc), row = quotient(pixel, g.ow), n = quotient(row, g.oh);
    const int64_t y = g.oy0 + row - n * g.oh, x = g.ox0 + pixel - row * g.ow, c = g.oc0 + i - pixel * g.oc;
    const uint64_t e = (uint64_t)((y * g.full.ow + x) * g.full.oc + c);
    const uint64_t sample = (uint64_t)(step->replica * d.replica_samples + d.first_sample + n);
    const uint64_t stream = ((uint64_t)step->step << 24) ^ d.layer, threshold = (uint64_t)(d.p * 0x1p32);
    return philox(step->seed, stream, (sample << 34) ^ (e >> 2), (int)(e & 3)) < threshold;
}

template <typename T>
static __global__ void drop(T *to, const T *from, hp_cuda_dropout d, const hp_cuda_step *step) {
    const float scale = d.p < 1 ? (float)(1 / (1 - d.p)) : 0.0f;
    for (int64_t i = thread_index(); i < d.elems; i += all_threads()) {
        float v[1];
        load<T, 1>(v, from, i);
        if (step->dropout) v[0] *= dropped(d, step, i) ? 0.0f : scale;
        store<T, 1>(to, i, v);
    }
}

/* --- launchers --- */

cudaError_t hp_cuda_clamp(hp_dtype t, void *y, const void *x, const void *added, int64_t n, hp_clamp k,
                          cudaStream_t s) {
    if (n == 0) return cudaSuccess;
    return with_elements(t, n, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        return HP_LAUNCH((clamp<T, V>), blocks_for(n / V), THREADS, s, (T *)y, (const T *)x, (const T *)added,
                         n, k);
    });
}

cudaError_t hp_cuda_mask(hp_dtype t, void *dx0, void *dx1, const void *dy, const void *y, int64_t n,
                         hp_clamp k, cudaStream_t s) {
    if (n == 0) return cudaSuccess;
    return with_elements(t, n, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        return HP_LAUNCH((mask<T, V>), blocks_for(n / V), THREADS, s, (T *)dx0, (T *)dx1, (const T *)dy,
                         (const T *)y, n, k);
    });
}

cudaError_t hp_cuda_act_forward(hp_dtype t, int32_t act, void *y, const void *x, int64_t n, float a, float b,
                                cudaStream_t s) {
    if (n == 0) return cudaSuccess;
    return with_elements(t, n, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        return HP_LAUNCH((act_forward<T, V>), blocks_for(n / V), THREADS, s, act, (T *)y, (const T *)x, n, a,
                         b);
    });
}

cudaError_t hp_cuda_act_backward(hp_dtype t, int32_t act, void *dx, const void *dy, const void *x, int64_t n,
                                 float a, float b, cudaStream_t s) {
    if (n == 0) return cudaSuccess;
    return with_elements(t, n, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        return HP_LAUNCH((act_backward<T, V>), blocks_for(n / V), THREADS, s, act, (T *)dx, (const T *)dy,
                         (const T *)x, n, a, b);
    });
}

cudaError_t hp_cuda_accum(hp_dtype t, void *dst, const void *src, int64_t n, cudaStream_t s) {
    if (n == 0) return cudaSuccess;
    return with_elements(t, n, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        return HP_LAUNCH((accum<T, V>), blocks_for(n / V), THREADS, s, (T *)dst, (const T *)src, n);
    });
}

cudaError_t hp_cuda_drop(hp_dtype t, void *to, const void *from, const hp_cuda_dropout *d,
                         const hp_cuda_step *step, cudaStream_t s) {
    if (d->elems == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(drop<T>, blocks_for(d->elems), THREADS, s, (T *)to, (const T *)from, *d, step);
    });
}
