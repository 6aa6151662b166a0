/* sums.h - two sums over the rows of a (rows, channels) matrix, and results computed from them; see
 * plan/memory/column_sums.h. A term adds the contribution of row `r` in `V` channels from `c` on; an end
 * takes a channel's sums. Both are passed to kernels by value. */
#ifndef HP_SUMS_H
#define HP_SUMS_H

#include "exec/cuda/train/cuda_train_kernel.h"

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        const cudaError_t e = (call);                                                                        \
        if (e != cudaSuccess) return e;                                                                      \
    } while (0)

/* part[.][threads]: adds up entries with equal threadIdx.x into those with threadIdx.y = 0. */
template <int N> static __device__ inline void add_up(double (&part)[N][THREADS]) {
    const unsigned me = threadIdx.y * blockDim.x + threadIdx.x;
    __syncthreads();
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        for (int i = 0; threadIdx.y < half && i < N; i++) part[i][me] += part[i][me + half * blockDim.x];
        __syncthreads();
    }
}

template <typename Term, int V>
static __global__ void sum_parts(Term term, int64_t rows, int32_t channels, double *partial) {
    __shared__ double part[2 * V][THREADS];
    const unsigned me = threadIdx.y * blockDim.x + threadIdx.x;
    const int32_t c = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x) * V;
    double first[V] = {}, second[V] = {};
    const int64_t step = (int64_t)gridDim.y * blockDim.y;
#pragma unroll 4
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; c < channels && r < rows; r += step)
        term.add(r, c, first, second);
    for (int v = 0; v < V; v++) {
        part[v][me] = first[v];
        part[V + v][me] = second[v];
    }
    add_up(part);
    for (int v = 0; threadIdx.y == 0 && c < channels && v < V; v++) {
        partial[(int64_t)blockIdx.y * channels + c + v] = part[v][me];
        partial[((int64_t)gridDim.y + blockIdx.y) * channels + c + v] = part[V + v][me];
    }
}

template <typename End>
static __global__ void end_sums(End end, const double *partial, int32_t parts, int32_t channels) {
    __shared__ double part[2][THREADS];
    const unsigned me = threadIdx.y * blockDim.x + threadIdx.x;
    const int32_t c = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    double first = 0, second = 0;
    for (int32_t p = (int32_t)threadIdx.y; c < channels && p < parts; p += (int32_t)blockDim.y) {
        first += partial[(int64_t)p * channels + c];
        second += partial[((int64_t)parts + p) * channels + c];
    }
    part[0][me] = first;
    part[1][me] = second;
    add_up(part);
    if (threadIdx.y == 0 && c < channels) end.take(c, part[0][me], part[1][me]);
}

template <int V, typename Term, typename End>
static cudaError_t column_sums(Term term, End end, int64_t rows, int32_t channels, double *partial,
                               cudaStream_t s) {
    const int32_t parts = hp_column_sums_parts(rows, channels);
    Matrix m = matrix_of(rows, channels, V, parts);
    m.grid.y = (unsigned)parts; /* even for empty parts */
    const cudaError_t e = HP_LAUNCH((sum_parts<Term, V>), m.grid, m.block, s, term, rows, channels, partial);
    if (e != cudaSuccess) return e;
    const Matrix ends = matrix_of(parts, channels, 1, 1);
    return HP_LAUNCH(end_sums<End>, ends.grid, ends.block, s, end, partial, parts, channels);
}

#endif
