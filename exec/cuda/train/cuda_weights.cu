/* cuda_weights.cu - converts weights between the canonical layout and that of convolutions; biases. */
#include "exec/cuda/train/sums.h"

/* Index in (outer, ins, taps) of element i of (outer, taps, ins). */
static __device__ inline int64_t canonical(int64_t i, int32_t ins, int32_t taps) {
    const int64_t rest = quotient(i, ins), outer = quotient(rest, taps);
    return (outer * ins + (i - rest * ins)) * taps + (rest - outer * taps);
}

template <typename T>
static __global__ void pack(T *to, const float *w, int64_t n, int32_t ins, int32_t taps) {
    for (int64_t i = thread_index(); i < n; i += all_threads()) round_to(&to[i], w[canonical(i, ins, taps)]);
}

template <typename T>
static __global__ void unpack(float *grad, const T *dw, int64_t n, int32_t ins, int32_t taps, bool add) {
    for (int64_t i = thread_index(); i < n; i += all_threads()) {
        float *to = &grad[canonical(i, ins, taps)];
        *to = (add ? *to : 0.0f) + real(dw[i]);
    }
}

template <typename T, int V>
static __global__ void add_bias(T *y, const float *bias, int64_t rows, int32_t channels) {
    const int32_t c = (int32_t)thread_index() * V;
    if (c >= channels) return;
    float b[V], v[V];
    load_each<V>(b, bias, c);
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < rows;
         r += (int64_t)gridDim.y * blockDim.y) {
        load<T, V>(v, y, r * channels + c);
        for (int j = 0; j < V; j++) v[j] += b[j];
        store<T, V>(y, r * channels + c, v);
    }
}

template <typename T, int V> struct ColumnTerm {
    const T *dy;
    int32_t channels;
    __device__ void add(int64_t r, int32_t c, double (&sum)[V], double (&)[V]) const {
        float v[V];
        load<T, V>(v, dy, r * channels + c);
        for (int j = 0; j < V; j++) sum[j] += (double)v[j];
    }
};

struct BiasEnd {
    float *grad;
    bool add;
    __device__ void take(int32_t c, double sum, double) const {
        grad[c] = (add ? grad[c] : 0.0f) + (float)sum;
    }
};

/* --- launchers --- */

cudaError_t hp_cuda_pack(hp_dtype t, void *to, const float *w, int64_t outer, int32_t ins, int32_t taps,
                         cudaStream_t s) {
    const int64_t n = outer * ins * taps;
    if (n == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(pack<T>, blocks_for(n), THREADS, s, (T *)to, w, n, ins, taps);
    });
}

cudaError_t hp_cuda_unpack(hp_dtype t, float *grad, const void *dw, int64_t outer, int32_t ins, int32_t taps,
                           bool add, cudaStream_t s) {
    const int64_t n = outer * ins * taps;
    if (n == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(unpack<T>, blocks_for(n), THREADS, s, grad, (const T *)dw, n, ins, taps, add);
    });
}

cudaError_t hp_cuda_bias(hp_dtype t, void *y, const float *bias, int64_t rows, int32_t channels,
                         cudaStream_t s) {
    if (rows == 0) return cudaSuccess;
    return with_elements(t, channels, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        const Matrix m = matrix_of(rows, channels, V, MOST_BLOCKS);
        return HP_LAUNCH((add_bias<T, V>), m.grid, m.block, s, (T *)y, bias, rows, channels);
    });
}

cudaError_t hp_cuda_bias_gradient(hp_dtype t, float *grad, const void *dy, int64_t rows, int32_t channels,
                                  bool add, double *partial, cudaStream_t s) {
    return with_elements(t, channels, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        const ColumnTerm<T, V> term = {(const T *)dy, channels};
        return column_sums<V>(term, BiasEnd{grad, add}, rows, channels, partial, s);
    });
}
