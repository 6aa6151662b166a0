/* warp.h - kernels with one row per warp: threadIdx.x is the lane. All lanes get the same sum, added in the
 * same order in every run. */
#ifndef HP_WARP_H
#define HP_WARP_H

#include "exec/cuda/runtime/cuda_elements.h"

enum { WARP = 32 };

template <typename T> static __device__ inline T warp_sum(T mine) {
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) mine += __shfl_xor_sync(~0u, mine, lanes);
    return mine;
}

static __device__ inline float warp_most(float mine) {
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        const float other = __shfl_xor_sync(~0u, mine, lanes);
        mine = other > mine ? other : mine;
    }
    return mine;
}

static __device__ inline int64_t warp_index() {
    return (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
}

static __device__ inline int64_t all_warps() {
    return (int64_t)gridDim.x * blockDim.y;
}

/* --- on the host --- */

static inline dim3 warps() {
    return dim3(WARP, THREADS / WARP);
}

/* Number of blocks for that many rows. */
static inline dim3 warps_for(int64_t rows) {
    return dim3(blocks_for(rows * WARP));
}

#endif
