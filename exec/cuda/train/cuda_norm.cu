/* cuda_norm.cu - batch norm: statistics in one pass over the input, then normalise + add + activation in a
 * second; likewise backward. Sums are in float64. If ranks share their statistics, the sums are a separate
 * task followed by an all-reduce. Definition: exec/device/ref/ref_norm.c. */
#include "exec/cuda/train/sums.h"

static __device__ inline bool counts(const hp_cuda_norm &n, int64_t pixel) {
    if (n.all) return true;
    const int64_t row = quotient(pixel, n.ow), sample = quotient(row, n.oh);
    const int64_t at[3] = {sample, row - sample * n.oh, pixel - row * n.ow};
    for (int a = 0; a < 3; a++)
        if (at[a] < n.counted.lo[a] || at[a] >= n.counted.hi[a]) return false;
    return true;
}

/* --- terms of the sums --- */

/* x and its square, shifted by the first pixel: so the one-pass variance stays accurate when
 * the mean is large. */
template <typename T, int V> struct OwnTerm {
    hp_cuda_norm n;
    __device__ void add(int64_t r, int32_t c, double (&sum)[V], double (&square)[V]) const {
        float x[V], shift[V];
        load<T, V>(x, (const T *)n.x, r * n.channels + c);
        load<T, V>(shift, (const T *)n.x, c);
        for (int v = 0; v < V; v++) {
            const double d = (double)x[v] - (double)shift[v];
            sum[v] += d;
            square[v] += d * d;
        }
    }
};

/* The same over this rank's counted pixels, unshifted, because other ranks add to it. */
template <typename T, int V> struct SharedTerm {
    hp_cuda_norm n;
    __device__ void add(int64_t r, int32_t c, double (&sum)[V], double (&square)[V]) const {
        float x[V];
        if (!counts(n, r)) return;
        load<T, V>(x, (const T *)n.x, r * n.channels + c);
        for (int v = 0; v < V; v++) {
            sum[v] += (double)x[v];
            square[v] += (double)x[v] * (double)x[v];
        }
    }
};

/* dy after the activation's mask. */
template <typename T, int V>
static __device__ inline void masked(const hp_cuda_norm &n, int64_t i, float (&g)[V]) {
    float y[V];
    load<T, V>(g, (const T *)n.dy, i);
    if (!n.y) return;
    load<T, V>(y, (const T *)n.y, i);
    for (int v = 0; v < V; v++)
        if (!(y[v] > n.clamp.lo && y[v] < n.clamp.hi)) g[v] = 0;
}

/* The gradient, alone and times x - mean. */
template <typename T, int V> struct GradientTerm {
    hp_cuda_norm n;
    __device__ void add(int64_t r, int32_t c, double (&sum)[V], double (&dot)[V]) const {
        float x[V], g[V], mean[V];
        load<T, V>(x, (const T *)n.x, r * n.channels + c);
        load_each<V>(mean, n.save, c);
        masked<T, V>(n, r * n.channels + c, g);
        for (int v = 0; v < V; v++) {
            sum[v] += (double)g[v];
            dot[v] += (double)g[v] * ((double)x[v] - (double)mean[v]);
        }
    }
};

/* --- from a channel's sums --- */

static __device__ inline void update_running(const hp_cuda_norm &n, int32_t c, double mean, double var) {
    const double replica = n.step->replica,
                 before = pow(n.running.keep, n.running.before[0] + n.running.before[1] * replica),
                 after = pow(n.running.keep, n.running.after[0] + n.running.after[1] * replica),
                 unbiased = n.pixels > 1 ? var * n.pixels / (n.pixels - 1) : var;
    n.running.mean[c] = (float)(((double)n.running.mean[c] * before + n.running.fresh * mean) * after);
    n.running.var[c] = (float)(((double)n.running.var[c] * before + n.running.fresh * unbiased) * after);
}

static __device__ inline void statistics(const hp_cuda_norm &n, int32_t c, double mean, double var) {
    if (var < 0) var = 0; /* rounding; NaN stays */
    const float inverse = (float)(1 / sqrt(var + n.eps));
    n.save[c] = (float)mean;
    n.save[n.channels + c] = inverse;
    n.scratch.factor[c] = n.gamma[c] * inverse;
    if (!n.running.stays) update_running(n, c, mean, var);
}

/* dx = scale*g - a - (x - mean)*b; `dot`: sum with x - mean, times `unit`. */
static __device__ inline void factors(const hp_cuda_norm &n, int32_t c, double sum, double dot, double unit) {
    const double inverse = (double)n.save[n.channels + c], scale = (double)n.gamma[c] * inverse;
    n.scratch.factor[c] = (float)scale;
    n.scratch.factor[n.channels + c] = (float)(scale * sum / n.pixels);
    n.scratch.factor[2 * n.channels + c] = (float)(scale * inverse * unit * dot / n.pixels);
}

static __device__ inline void parameter_gradients(const hp_cuda_norm &n, int32_t c, double sum, double dot) {
    const double inverse = (double)n.save[n.channels + c];
    n.gradient.gamma[c] = (n.gradient.add ? n.gradient.gamma[c] : 0.0f) + (float)(dot * inverse);
    n.gradient.beta[c] = (n.gradient.add ? n.gradient.beta[c] : 0.0f) + (float)sum;
}

template <typename T> struct OwnEnd {
    hp_cuda_norm n;
    __device__ void take(int32_t c, double sum, double square) const {
        const double off = sum / n.pixels, shift = (double)real(((const T *)n.x)[c]);
        statistics(n, c, off + shift, square / n.pixels - off * off);
    }
};

struct SharedEnd {
    hp_cuda_norm n;
    __device__ void take(int32_t c, double sum, double square) const {
        n.sums[c] = sum;
        n.sums[n.channels + c] = square;
    }
};

struct GradientEnd {
    hp_cuda_norm n;
    __device__ void take(int32_t c, double sum, double dot) const {
        parameter_gradients(n, c, sum, dot);
        factors(n, c, sum, dot, (double)n.save[n.channels + c]);
    }
};

struct SharedGradientEnd {
    hp_cuda_norm n;
    __device__ void take(int32_t c, double sum, double dot) const {
        parameter_gradients(n, c, sum, dot);
        n.sums[c] = sum;
        n.sums[n.channels + c] = dot * (double)n.save[n.channels + c];
    }
};

/* --- one channel at a time, from the sums of all ranks --- */

static __global__ void shared_statistics(hp_cuda_norm n) {
    const int32_t c = (int32_t)thread_index();
    if (c >= n.channels) return;
    const double mean = n.sums[c] / n.pixels;
    statistics(n, c, mean, n.sums[n.channels + c] / n.pixels - mean * mean);
}

static __global__ void running_factors(hp_cuda_norm n) {
    const int32_t c = (int32_t)thread_index();
    if (c < n.channels)
        n.scratch.factor[c] = n.gamma[c] * (float)(1 / sqrt((double)n.running.var[c] + n.eps));
}

static __global__ void shared_factors(hp_cuda_norm n) {
    const int32_t c = (int32_t)thread_index();
    if (c < n.channels) factors(n, c, n.sums[c], n.sums[n.channels + c], 1);
}

/* --- one pixel at a time --- */

template <typename T, int V> static __global__ void apply(hp_cuda_norm n, const float *means) {
    const int32_t c = (int32_t)thread_index() * V;
    if (c >= n.channels) return;
    float mean[V], scale[V], beta[V];
    load_each<V>(mean, means, c);
    load_each<V>(scale, n.scratch.factor, c);
    load_each<V>(beta, n.beta, c);
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < n.rows;
         r += (int64_t)gridDim.y * blockDim.y) {
        float x[V], added[V] = {};
        load<T, V>(x, (const T *)n.x, r * n.channels + c);
        if (n.added) load<T, V>(added, (const T *)n.added, r * n.channels + c);
        for (int v = 0; v < V; v++) x[v] = clamped((x[v] - mean[v]) * scale[v] + beta[v] + added[v], n.clamp);
        store<T, V>((T *)n.y, r * n.channels + c, x);
    }
}

/* dx or dadded may alias dy, which is read first. */
template <typename T, int V> static __global__ void apply_backward(hp_cuda_norm n) {
    const int32_t c = (int32_t)thread_index() * V;
    if (c >= n.channels) return;
    float mean[V], scale[V], a[V], b[V];
    load_each<V>(mean, n.save, c);
    load_each<V>(scale, n.scratch.factor, c);
    load_each<V>(a, n.scratch.factor, n.channels + c);
    load_each<V>(b, n.scratch.factor, 2 * n.channels + c);
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < n.rows;
         r += (int64_t)gridDim.y * blockDim.y) {
        const bool here = counts(n, r);
        float x[V], g[V];
        load<T, V>(x, (const T *)n.x, r * n.channels + c);
        masked<T, V>(n, r * n.channels + c, g);
        if (n.dadded) store<T, V>((T *)n.dadded, r * n.channels + c, g);
        for (int v = 0; v < V; v++) g[v] = scale[v] * g[v] - (here ? a[v] + (x[v] - mean[v]) * b[v] : 0);
        if (n.dx) store<T, V>((T *)n.dx, r * n.channels + c, g);
    }
}

/* --- launchers --- */

static cudaError_t apply_all(const hp_cuda_norm *n, const float *means, cudaStream_t s) {
    if (n->rows == 0) return cudaSuccess;
    return with_elements(n->dtype, n->channels, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        const Matrix m = matrix_of(n->rows, n->channels, V, MOST_BLOCKS);
        return HP_LAUNCH((apply<T, V>), m.grid, m.block, s, *n, means);
    });
}

static cudaError_t apply_all_backward(const hp_cuda_norm *n, cudaStream_t s) {
    if (n->rows == 0) return cudaSuccess;
    return with_elements(n->dtype, n->channels, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        const Matrix m = matrix_of(n->rows, n->channels, V, MOST_BLOCKS);
        return HP_LAUNCH((apply_backward<T, V>), m.grid, m.block, s, *n);
    });
}

cudaError_t hp_cuda_norm_stats(const hp_cuda_norm *n, cudaStream_t s) {
    return with_elements(n->dtype, n->channels, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        return column_sums<V>(SharedTerm<T, V>{*n}, SharedEnd{*n}, n->rows, n->channels, n->scratch.partial,
                              s);
    });
}

static cudaError_t own_statistics(const hp_cuda_norm *n, cudaStream_t s) {
    return with_elements(n->dtype, n->channels, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        return column_sums<V>(OwnTerm<T, V>{*n}, OwnEnd<T>{*n}, n->rows, n->channels, n->scratch.partial, s);
    });
}

cudaError_t hp_cuda_norm_forward(const hp_cuda_norm *n, cudaStream_t s) {
    if (n->sums)
        TRY(HP_LAUNCH(shared_statistics, blocks_for(n->channels), THREADS, s, *n));
    else
        TRY(own_statistics(n, s));
    return apply_all(n, n->save, s);
}

cudaError_t hp_cuda_norm_eval(const hp_cuda_norm *n, cudaStream_t s) {
    TRY(HP_LAUNCH(running_factors, blocks_for(n->channels), THREADS, s, *n));
    return apply_all(n, n->running.mean, s);
}

template <typename End> static cudaError_t gradient_sums(const hp_cuda_norm *n, End end, cudaStream_t s) {
    return with_elements(n->dtype, n->channels, [&](auto type, auto width) {
        using T = decltype(type);
        constexpr int V = decltype(width)::value;
        return column_sums<V>(GradientTerm<T, V>{*n}, end, n->rows, n->channels, n->scratch.partial, s);
    });
}

cudaError_t hp_cuda_norm_backward_stats(const hp_cuda_norm *n, cudaStream_t s) {
    return gradient_sums(n, SharedGradientEnd{*n}, s);
}

cudaError_t hp_cuda_norm_backward(const hp_cuda_norm *n, cudaStream_t s) {
    if (n->sums)
        TRY(HP_LAUNCH(shared_factors, blocks_for(n->channels), THREADS, s, *n));
    else
        TRY(gradient_sums(n, GradientEnd{*n}, s));
    if (!n->dx && !n->dadded) return cudaSuccess;
    return apply_all_backward(n, s);
}
