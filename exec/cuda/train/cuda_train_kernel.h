/* cuda_train_kernel.h - shared by the kernels of training: parameters, clamps, element types by number,
 * matrices of rows and channels. */
#ifndef HP_CUDA_TRAIN_KERNEL_H
#define HP_CUDA_TRAIN_KERNEL_H

#include "exec/cuda/runtime/cuda_elements.h"
#include "exec/cuda/train/cuda_train_kernels.h"

#include <type_traits>

/* Loads V adjacent parameters, at any alignment. */
template <int V> static __device__ inline void load_each(float (&to)[V], const float *from, int64_t i) {
    for (int v = 0; v < V; v++) to[v] = from[i + v];
}

/* A NaN stays a NaN, so that a diverged training shows. */
static __device__ inline float clamped(float v, hp_clamp k) {
    v = v < k.lo ? k.lo : v;
    return v > k.hi ? k.hi : v;
}

/* Pixel and channel of a thread's element of (N, h, w, c). */
struct Place {
    int64_t n;
    int32_t y, x, c;
};

static __device__ inline Place place_of(int64_t i, int32_t h, int32_t w, int32_t channels) {
    const int64_t pixel = quotient(i, channels), row = quotient(pixel, w), n = quotient(row, h);
    return {n, (int32_t)(row - n * h), (int32_t)(pixel - row * w), (int32_t)(i - pixel * channels)};
}

/* --- on the host --- */

/* The same and, as a constant, the number of elements to take at a time from a count or row length n. */
template <typename F> static cudaError_t with_elements(hp_dtype t, int64_t n, F f) {
    return with_type(t, [&](auto type) {
        return n % 4 == 0 ? f(type, std::integral_constant<int, 4>())
                          : f(type, std::integral_constant<int, 1>());
    });
}

/* A (rows, channels) matrix: threadIdx.x is the channel, in steps of `width`. */
typedef struct Matrix {
    dim3 grid, block;
} Matrix;

static inline Matrix matrix_of(int64_t rows, int32_t channels, int width, int64_t most_rows) {
    const int32_t columns = (channels + width - 1) / width;
    unsigned lanes = 1;
    while (lanes < 32 && (int32_t)lanes < columns) lanes *= 2;
    const unsigned deep = THREADS / lanes;
    int64_t down = (rows + deep - 1) / deep;
    if (down > most_rows) down = most_rows;
    return {dim3(((unsigned)columns + lanes - 1) / lanes, down > 0 ? (unsigned)down : 1), dim3(lanes, deep)};
}

#endif
