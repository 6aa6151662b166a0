/* cuda_elements.h - shared by all kernels: elements of any type, computed in float32; vector loads and stores
 * where aligned; numbers of threads. */
#ifndef HP_CUDA_ELEMENTS_H
#define HP_CUDA_ELEMENTS_H

#include "exec/cuda/runtime/cuda_runtime_kernel.h"
#include "networks/graph/dtype.h"

enum { THREADS = 256, MOST_BLOCKS = 4096 }; /* 31 blocks per multiprocessor of an H200 */

static __device__ inline float real(float v) {
    return v;
}
static __device__ inline float real(__nv_bfloat16 v) {
    return __bfloat162float(v);
}
static __device__ inline float real(__half v) {
    return __half2float(v);
}
static __device__ inline void round_to(float *to, float v) {
    *to = v;
}
static __device__ inline void round_to(__nv_bfloat16 *to, float v) {
    *to = __float2bfloat16(v);
}
static __device__ inline void round_to(__half *to, float v) {
    *to = __float2half(v);
}

/* 2^x within two units in the last place; below 2^-126 it is 0. */
static __device__ inline float power_of_two(float x) {
#if defined(HP_CUDA_STANDIN)
    return exp2f(x);
#else
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}

/* V adjacent elements, read and written together. */
template <typename T, int V> struct alignas(sizeof(T) * V) Pack { T at[V]; };

template <typename T, int V> static __device__ inline void load(float (&to)[V], const T *from, int64_t i) {
    const Pack<T, V> p = *reinterpret_cast<const Pack<T, V> *>(from + i);
    for (int v = 0; v < V; v++) to[v] = real(p.at[v]);
}

template <typename T, int V> static __device__ inline void store(T *to, int64_t i, const float (&from)[V]) {
    Pack<T, V> p;
    for (int v = 0; v < V; v++) round_to(&p.at[v], from[v]);
    *reinterpret_cast<Pack<T, V> *>(to + i) = p;
}

/* A thread's sum of many numbers, with an error that does not grow with their count: blocks of
 * SUM_BLOCK in float32, their sums in float64, as in exec/device/kernels/isa_sum.inc. Products and sums
 * are never contracted. */
enum { SUM_BLOCK = 64 };

template <int V> struct BlockedSum {
    float part[V] = {};
    double sum[V] = {};
    int held = 0;
    __device__ inline void add(const float (&v)[V]) {
        for (int j = 0; j < V; j++) part[j] = __fadd_rn(part[j], v[j]);
        if (++held < SUM_BLOCK) return;
        for (int j = 0; j < V; j++) {
            sum[j] += (double)part[j];
            part[j] = 0;
        }
        held = 0;
    }
    __device__ inline float total(int j) const {
        return (float)(sum[j] + (double)part[j]);
    }
};

static __device__ inline int64_t thread_index() {
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline int64_t all_threads() {
    return (int64_t)gridDim.x * blockDim.x;
}

/* v / by, in 32 bits where that suffices: four times as fast. */
static __device__ inline int64_t quotient(int64_t v, int32_t by) {
    return v <= UINT32_MAX ? (int64_t)((uint32_t)v / (uint32_t)by) : v / by;
}

/* --- on the host --- */

/* Calls f with a value of the element type. */
template <typename F> static cudaError_t with_type(int32_t t, F f) {
    if (t == HP_BF16) return f(__nv_bfloat16());
    if (t == HP_F16) return f(__half());
    return f(float());
}

static inline unsigned blocks_for(int64_t threads) {
    const int64_t blocks = (threads + THREADS - 1) / THREADS;
    return blocks < MOST_BLOCKS ? (unsigned)blocks : (unsigned)MOST_BLOCKS;
}

#endif
