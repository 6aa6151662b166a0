/* cuda_reduce.cu - reduces each pixel's channels to one, and the transpose: a thread per pixel, or a warp if
 * there are many channels. Means are summed in float64. Definition: exec/device/ref/ref_gather.c. */
#include "exec/cuda/train/cuda_train_kernel.h"
#include "exec/cuda/runtime/warp.h"

/* Each of LANES threads takes every LANESth channel; all of them get the result. */

template <typename T, int LANES>
static __device__ inline float mean_of(const T *x, int32_t channels, int32_t lane) {
    double sum = 0;
    for (int32_t c = lane; c < channels; c += LANES) sum += (double)real(x[c]);
    if constexpr (LANES > 1) sum = warp_sum(sum);
    return (float)(sum / channels);
}

/* The first of the largest. A NaN never compares larger, but wins as the first channel. */
template <typename T, int LANES>
static __device__ inline int32_t first_largest(const T *x, int32_t channels, int32_t lane) {
    float most = real(x[0]);
    int32_t best = 0;
    for (int32_t c = lane; c < channels; c += LANES)
        if (real(x[c]) > most) {
            most = real(x[c]);
            best = c;
        }
    for (int lanes = LANES / 2; lanes > 0; lanes /= 2) {
        const float other = __shfl_xor_sync(~0u, most, lanes);
        const int32_t at = __shfl_xor_sync(~0u, best, lanes);
        if (!(other > most || (other == most && at < best))) continue;
        most = other;
        best = at;
    }
    return best;
}

template <typename T, int LANES> static __global__ void reduce(T *y, const T *x, hp_cuda_reduce r) {
    const int32_t lane = (int32_t)(threadIdx.x % LANES);
    for (int64_t i = thread_index() / LANES; i < r.pixels; i += all_threads() / LANES) {
        const T *from = x + i * r.channels;
        const bool means = r.kind == (int32_t)HP_CHANNELS_MEAN;
        const int32_t best = means ? 0 : first_largest<T, LANES>(from, r.channels, lane);
        const float v = means                                ? mean_of<T, LANES>(from, r.channels, lane)
                        : r.kind == (int32_t)HP_CHANNELS_MAX ? real(from[best])
                                                             : (float)best;
        if (lane == 0) round_to(y + i, v);
    }
}

template <typename T, int LANES>
static __global__ void reduce_backward(T *dx, const T *dy, const T *x, hp_cuda_reduce r) {
    const int32_t lane = (int32_t)(threadIdx.x % LANES);
    for (int64_t i = thread_index() / LANES; i < r.pixels; i += all_threads() / LANES) {
        const bool means = r.kind == (int32_t)HP_CHANNELS_MEAN;
        const int32_t best = means ? 0 : first_largest<T, LANES>(x + i * r.channels, r.channels, lane);
        const float g = real(dy[i]);
        for (int32_t c = lane; c < r.channels; c += LANES)
            round_to(dx + i * r.channels + c, means ? g / (float)r.channels : c == best ? g : 0.0f);
    }
}

/* --- launchers --- */

/* Calls f with the element type and, as a constant, the number of threads per pixel. */
template <typename F> static cudaError_t with_lanes(hp_dtype t, int32_t channels, F f) {
    return with_type(t, [&](auto type) {
        return channels >= WARP ? f(type, std::integral_constant<int, WARP>())
                                : f(type, std::integral_constant<int, 1>());
    });
}

cudaError_t hp_cuda_reduce_forward(hp_dtype t, void *y, const void *x, const hp_cuda_reduce *r,
                                   cudaStream_t s) {
    if (r->pixels == 0) return cudaSuccess;
    return with_lanes(t, r->channels, [&](auto type, auto lanes) {
        using T = decltype(type);
        constexpr int LANES = decltype(lanes)::value;
        return HP_LAUNCH((reduce<T, LANES>), blocks_for(r->pixels * LANES), THREADS, s, (T *)y, (const T *)x,
                         *r);
    });
}

cudaError_t hp_cuda_reduce_backward(hp_dtype t, void *dx, const void *dy, const void *x,
                                    const hp_cuda_reduce *r, cudaStream_t s) {
    if (r->pixels == 0) return cudaSuccess;
    return with_lanes(t, r->channels, [&](auto type, auto lanes) {
        using T = decltype(type);
        constexpr int LANES = decltype(lanes)::value;
        return HP_LAUNCH((reduce_backward<T, LANES>), blocks_for(r->pixels * LANES), THREADS, s, (T *)dx,
                         (const T *)dy, (const T *)x, *r);
    });
}
