/* cuda_step.cu - softmax cross-entropy with the step's metric, and the optimisers. Definitions:
 * exec/device/cpu/cpu_step.c, exec/device/metric.h, exec/device/device_update.inc. */
#include "exec/cuda/train/cuda_train_kernel.h"

/* --- a row's loss: L threads share its classes --- */

/* The first of the largest logits. */
struct Best {
    float value;
    int32_t at;
};

template <int L> static __device__ inline Best best_of(Best mine) {
    for (int lanes = L / 2; lanes > 0; lanes /= 2) {
        const Best other = {__shfl_xor_sync(~0u, mine.value, lanes), __shfl_xor_sync(~0u, mine.at, lanes)};
        if (other.value > mine.value || (other.value == mine.value && other.at < mine.at)) mine = other;
    }
    return mine;
}

template <int L> static __device__ inline double sum_of(double mine) {
    for (int lanes = L / 2; lanes > 0; lanes /= 2) mine += __shfl_xor_sync(~0u, mine, lanes);
    return mine;
}

template <typename T, int L>
static __device__ inline Best top_of(const T *logits, int32_t classes, int32_t lane) {
    Best top = {lane < classes ? real(logits[lane]) : -INFINITY, lane};
#pragma unroll 8
    for (int32_t c = lane + L; c < classes; c += L)
        if (real(logits[c]) > top.value) top = {real(logits[c]), c};
    return best_of<L>(top);
}

/* exp(logit - top). For the first maximum it is exactly 1, so that the gradient of a certain row keeps its
 * digits. 16-bit logits use float32. */
template <typename T> static __device__ inline double power(const T *logits, int32_t c, Best top) {
    if (c == top.at) return 1;
    if (sizeof(T) < sizeof(float)) return (double)expf(real(logits[c]) - top.value);
    return exp((double)real(logits[c]) - (double)top.value);
}

template <typename T, int L>
static __device__ inline double row_loss(const hp_cuda_loss &a, int64_t row, int32_t label, Best top,
                                         int32_t lane) {
    const T *logits = (const T *)a.logits + row * a.classes;
    T *dlogits = a.dlogits ? (T *)a.dlogits + row * a.classes : NULL;
    const double scale = a.scale * a.step->loss_scale;
    double sum = 0;
#pragma unroll 8
    for (int32_t c = lane; c < a.classes; c += L) sum += power(logits, c, top);
    sum = sum_of<L>(sum);
    const double part = 1 / sum;
#pragma unroll 8
    for (int32_t c = lane; a.dlogits && c < a.classes; c += L)
        round_to(&dlogits[c], (float)((power(logits, c, top) * part - (c == label ? 1 : 0)) * scale));
    return log(sum) + (double)top.value - (double)real(logits[label]);
}

/* hp_metric_add */
static __device__ inline void count_row(double (&m)[HP_METRICS], double loss, int32_t label, int32_t top) {
    m[HP_METRIC_LOSS] += loss;
    m[HP_METRIC_COUNTED] += 1;
    m[HP_METRIC_CORRECT] += top == label;
    m[HP_METRIC_HIT] += top == label && label != 0;
    m[HP_METRIC_PREDICTED] += top != 0;
    m[HP_METRIC_LABELLED] += label != 0;
}

/* --- sums of a block's threads, then of the blocks --- */

static __device__ inline void add_up(double (&part)[HP_METRICS][THREADS], const double (&mine)[HP_METRICS]) {
    for (int k = 0; k < HP_METRICS; k++) part[k][threadIdx.x] = mine[k];
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        for (int k = 0; threadIdx.x < half && k < HP_METRICS; k++)
            part[k][threadIdx.x] += part[k][threadIdx.x + half];
        __syncthreads();
    }
}

/* --- classes spread over several ranks --- */

template <typename T, int L> static __global__ void maxsum(hp_cuda_loss a) {
    const int32_t lane = (int32_t)threadIdx.x % L;
    for (int64_t row = thread_index() / L; row < a.rows; row += all_threads() / L) {
        const T *logits = (const T *)a.logits + row * a.classes;
        const Best top = top_of<T, L>(logits, a.classes, lane);
        const int32_t label = a.labels[row] - a.first;
        double *to = a.sums + a.first_sum + row * HP_MAXSUMS, sum = 0;
#pragma unroll 8
        for (int32_t c = lane; c < a.classes; c += L) sum += power(logits, c, top);
        sum = sum_of<L>(sum);
        if (lane > 0) continue;
        to[HP_MAXSUM_MAX] = (double)top.value;
        to[HP_MAXSUM_SUM] = sum;
        to[HP_MAXSUM_AT] = a.first + top.at;
        if (label >= 0 && label < a.classes) to[HP_MAXSUM_LABEL] = (double)real(logits[label]);
    }
}

/* hp_softmax_of */
struct Softmax {
    double max, sum, label;
    int32_t top;
};
static __device__ inline Softmax softmax_of(const hp_cuda_loss &a, int64_t row) {
    Softmax r = {0, 0, 0, -1};
    for (int32_t m = 0; m < a.members; m++) {
        const double *s = a.sums + (m * a.rows + row) * HP_MAXSUMS;
        if (r.top < 0 || s[HP_MAXSUM_MAX] > r.max) {
            r.max = s[HP_MAXSUM_MAX];
            r.top = (int32_t)s[HP_MAXSUM_AT];
        }
        r.label += s[HP_MAXSUM_LABEL];
    }
    for (int32_t m = 0; m < a.members; m++) {
        const double *s = a.sums + (m * a.rows + row) * HP_MAXSUMS;
        r.sum += s[HP_MAXSUM_SUM] * exp(s[HP_MAXSUM_MAX] - r.max);
    }
    return r;
}

template <typename T, int L>
static __device__ inline void shared_row(const hp_cuda_loss &a, int64_t row, int32_t lane,
                                         double (&mine)[HP_METRICS]) {
    const Softmax r = softmax_of(a, row);
    const int32_t label = a.labels[row];
    const bool counts = label >= 0 && label < a.all; /* hp_metric_counts */
    const T *logits = (const T *)a.logits + row * a.classes;
    const double scale = counts ? a.scale * a.step->loss_scale : 0, part = 1 / r.sum;
    for (int32_t c = lane; a.dlogits && c < a.classes; c += L) {
        const double p = exp((double)real(logits[c]) - r.max) * part;
        round_to(&((T *)a.dlogits)[row * a.classes + c],
                 (float)((p - (a.first + c == label ? 1 : 0)) * scale));
    }
    if (lane == 0 && label >= a.first && label < a.first + a.classes) /* hp_metric_is_here */
        count_row(mine, log(r.sum) + r.max - r.label, label, r.top);
}

template <typename T, int L>
static __device__ inline void whole_row(const hp_cuda_loss &a, int64_t row, int32_t lane,
                                        double (&mine)[HP_METRICS]) {
    const int32_t label = a.labels[row];
    const Best top = top_of<T, L>((const T *)a.logits + row * a.classes, a.classes, lane);
    if (label >= 0 && label < a.classes) { /* hp_metric_counts */
        const double loss = row_loss<T, L>(a, row, label, top, lane);
        if (lane == 0) count_row(mine, loss, label, top.at);
    } else {
        for (int32_t c = lane; a.dlogits && c < a.classes; c += L)
            round_to(&((T *)a.dlogits)[row * a.classes + c], 0);
    }
}

template <typename T, int L> static __global__ void softmax_loss(hp_cuda_loss a) {
    __shared__ double part[HP_METRICS][THREADS];
    const int32_t lane = (int32_t)threadIdx.x % L;
    double mine[HP_METRICS] = {};
    for (int64_t row = thread_index() / L; row < a.rows; row += all_threads() / L)
        if (a.sums)
            shared_row<T, L>(a, row, lane, mine);
        else
            whole_row<T, L>(a, row, lane, mine);
    add_up(part, mine);
    if (threadIdx.x < HP_METRICS) a.partial[blockIdx.x * HP_METRICS + threadIdx.x] = part[threadIdx.x][0];
}

static __global__ void end_loss(hp_cuda_loss a, unsigned blocks) {
    __shared__ double part[HP_METRICS][THREADS];
    double mine[HP_METRICS] = {};
    for (int k = 0; threadIdx.x < blocks && k < HP_METRICS; k++)
        mine[k] = a.partial[threadIdx.x * HP_METRICS + k];
    add_up(part, mine);
    if (threadIdx.x < HP_METRICS) a.metric[threadIdx.x] += part[threadIdx.x][0];
}

/* --- optimiser --- */

/* hp_metric_descent_factor without an overflow */
static __device__ inline float gradient_factor(const hp_cuda_update &a) {
    const double counted = a.metric[HP_METRIC_COUNTED],
                 factor = (a.rows > 0 && counted > 0 ? a.rows / counted : 1) / a.step->loss_scale;
    if (!a.clips) return (float)factor;
    const double norm = factor * sqrt(a.metric[HP_METRIC_SQUARES]);
    return (float)(factor * hp_update_clip_factor(norm, a.step->clip_norm));
}

#define STATE(...)
#define OPTIMIZER(id, name, function, ...)                                                                   \
    static __global__ void descend_by_##function(hp_cuda_update a) {                                         \
        const hp_update_rates_f32 rates = hp_update_rates_as_f32(&a.step->rates);                            \
        const float factor = gradient_factor(a);                                                             \
        if (a.metric[HP_METRIC_OVERFLOW] > 0) return;                                                        \
        for (int64_t i = thread_index(); i < a.n; i += all_threads())                                        \
            a.w[i] = hp_update_##function##_f32(a.w[i], factor * a.g[i], &a.m[i], &a.v[i],                   \
                                                i < a.decayed ? rates.decay : 0, &rates);                    \
    }
#include "networks/graph/optimizers.def"

/* --- the norm of gradients --- */

static __global__ void sum_squares(const float *g, int64_t n, double *partial) {
    __shared__ double part[THREADS];
    double mine = 0;
    for (int64_t i = thread_index(); i < n; i += all_threads()) mine += (double)g[i] * (double)g[i];
    part[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = part[0];
}

static __global__ void end_squares(const double *partial, unsigned blocks, double *metric) {
    double sum = 0;
    for (unsigned i = 0; threadIdx.x == 0 && i < blocks; i++) sum += partial[i];
    if (threadIdx.x == 0) metric[HP_METRIC_SQUARES] += sum;
}

/* Threads that find one all write the same number. */
static __global__ void find_overflow(const float *g, int64_t n, double *metric) {
    bool finite = true;
    for (int64_t i = thread_index(); i < n; i += all_threads()) finite = finite && isfinite(g[i]);
    if (!finite) metric[HP_METRIC_OVERFLOW] = 1;
}

/* --- launchers --- */

/* One thread per row if classes are few, else a warp. */
template <typename T> static cudaError_t start_loss(const hp_cuda_loss *l, unsigned *blocks, cudaStream_t s) {
    const int lanes = l->classes <= 32 ? 1 : 32;
    *blocks = blocks_for(l->rows * lanes);
    if (*blocks > HP_GPU_LOSS_BLOCKS) *blocks = HP_GPU_LOSS_BLOCKS;
    if (lanes == 1) return HP_LAUNCH((softmax_loss<T, 1>), *blocks, THREADS, s, *l);
    return HP_LAUNCH((softmax_loss<T, 32>), *blocks, THREADS, s, *l);
}

template <typename T> static cudaError_t start_maxsum(const hp_cuda_loss *l, cudaStream_t s) {
    if (l->classes <= 32) return HP_LAUNCH((maxsum<T, 1>), blocks_for(l->rows), THREADS, s, *l);
    return HP_LAUNCH((maxsum<T, 32>), blocks_for(l->rows * 32), THREADS, s, *l);
}

cudaError_t hp_cuda_maxsum(hp_dtype t, const hp_cuda_loss *l, cudaStream_t s) {
    if (l->rows == 0) return cudaSuccess;
    return with_type(t, [&](auto type) { return start_maxsum<decltype(type)>(l, s); });
}

cudaError_t hp_cuda_softmax_loss(hp_dtype t, const hp_cuda_loss *l, cudaStream_t s) {
    static_assert((int)HP_GPU_LOSS_BLOCKS <= (int)THREADS, "a thread for each block at the end");
    unsigned blocks = 0;
    if (l->rows == 0) return cudaSuccess;
    const cudaError_t e = with_type(t, [&](auto type) { return start_loss<decltype(type)>(l, &blocks, s); });
    if (e != cudaSuccess) return e;
    return HP_LAUNCH(end_loss, 1, THREADS, s, *l, blocks);
}

cudaError_t hp_cuda_descend(int32_t optimizer, const hp_cuda_update *a, cudaStream_t s) {
    if (a->n == 0) return cudaSuccess;
    switch (optimizer) {
#define STATE(...)
#define OPTIMIZER(id, name, function, ...)                                                                   \
    case HP_##id:                                                                                            \
        return HP_LAUNCH(descend_by_##function, blocks_for(a->n), THREADS, s, *a);
#include "networks/graph/optimizers.def"
    }
    return cudaErrorInvalidValue;
}

cudaError_t hp_cuda_squares(const float *g, int64_t n, double *partial, double *metric, cudaStream_t s) {
    if (n == 0) return cudaSuccess;
    unsigned blocks = blocks_for(n);
    if (blocks > HP_GPU_LOSS_BLOCKS) blocks = HP_GPU_LOSS_BLOCKS;
    const cudaError_t e = HP_LAUNCH(sum_squares, blocks, THREADS, s, g, n, partial);
    if (e != cudaSuccess) return e;
    return HP_LAUNCH(end_squares, 1, THREADS, s, partial, blocks, metric);
}

cudaError_t hp_cuda_finite(const float *g, int64_t n, double *metric, cudaStream_t s) {
    if (n == 0) return cudaSuccess;
    return HP_LAUNCH(find_overflow, blocks_for(n), THREADS, s, g, n, metric);
}
