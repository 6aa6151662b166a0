/* probe.cu - kernels that test the stand-in itself. */
#include "exec/cuda/runtime/mma.h"

#include "tests/standin/probe.h"

static __global__ void wait_for(const volatile int32_t *flag) {
    while (*flag == 0) {
    }
}

cudaError_t probe_wait(const int32_t *flag, cudaStream_t s) {
    return HP_LAUNCH(wait_for, 1, 1, s, flag);
}

template <bool BROKEN> static __global__ void sum_of(int32_t *sum, const int32_t *x, int32_t n) {
    __shared__ int32_t part[1024];
    const int me = (int)threadIdx.x, i = (int)(blockIdx.x * blockDim.x) + me;
    part[me] = i < n ? x[i] : 0;
    for (int left = (int)blockDim.x; left > 1; left = (left + 1) / 2) {
        if (!BROKEN) __syncthreads();
        if (me < left / 2) part[me] += part[left - 1 - me];
    }
    if (me == 0) sum[blockIdx.x] = part[0];
}

cudaError_t probe_sum(int32_t *sum, const int32_t *x, int32_t n, unsigned threads, int broken,
                      cudaStream_t s) {
    const unsigned blocks = ((unsigned)n + threads - 1) / threads;
    return broken ? HP_LAUNCH(sum_of<true>, blocks, threads, s, sum, x, n)
                  : HP_LAUNCH(sum_of<false>, blocks, threads, s, sum, x, n);
}

static __global__ void warps(int32_t *sum, int32_t *segments, const int32_t *x) {
    const unsigned all = 0xffffffffu, i = threadIdx.x;
    int32_t v = x[i], part = x[i];
    for (int half = 16; half > 0; half /= 2) v += __shfl_xor_sync(all, v, half);
    for (unsigned by = 4; by > 0; by /= 2) part += __shfl_down_sync(all, part, by, 8);
    sum[i] = v;
    if (i % 8 == 0) segments[i / 8] = part;
}

cudaError_t probe_warps(int32_t *sum, int32_t *segments, const int32_t *x, unsigned threads, cudaStream_t s) {
    return HP_LAUNCH(warps, 1, threads, s, sum, segments, x);
}

static __global__ void transpose(probe_matrices m) {
    __shared__ float tile[16][17];
    int x = (int)(blockIdx.x * 16 + threadIdx.x), y = (int)(blockIdx.y * 16 + threadIdx.y);
    if (x < m.columns && y < m.rows) tile[threadIdx.y][threadIdx.x] = m.x[y * m.columns + x];
    __syncthreads();
    x = (int)(blockIdx.y * 16 + threadIdx.x);
    y = (int)(blockIdx.x * 16 + threadIdx.y);
    if (x < m.rows && y < m.columns) m.t[y * m.rows + x] = tile[threadIdx.x][threadIdx.y];
}

cudaError_t probe_transpose(const probe_matrices *m, cudaStream_t s) {
    const dim3 grid((unsigned)(m->columns + 15) / 16, (unsigned)(m->rows + 15) / 16);
    return HP_LAUNCH(transpose, grid, dim3(16, 16), s, *m);
}

static __global__ void count(unsigned long long *bins, const uint8_t *x, int32_t n) {
    const int32_t i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) atomicAdd(&bins[x[i]], 1ull);
}

cudaError_t probe_count(unsigned long long *bins, const uint8_t *x, int32_t n, cudaStream_t s) {
    return HP_LAUNCH(count, ((unsigned)n + 127) / 128, 128, s, bins, x, n);
}

/* Four adjacent k of a row of a, or of a column of b. */
static __device__ uint32_t four(const uint8_t *at, int step) {
    return at[0] | (uint32_t)at[step] << 8 | (uint32_t)at[2 * step] << 16 | (uint32_t)at[3 * step] << 24;
}

static __global__ void product(int32_t *d, const uint8_t *a, const int8_t *b, int32_t k) {
    const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
    int32_t sum[4];
    for (int i = 0; i < 4; i++) sum[i] = d[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
    for (int at = 0; at < k; at += 32) {
        uint32_t ra[4], rb[2];
        for (int i = 0; i < 4; i++) ra[i] = four(a + (g + i % 2 * 8) * k + at + 4 * t + i / 2 * 16, 1);
        for (int i = 0; i < 2; i++) rb[i] = four((const uint8_t *)b + (at + 4 * t + 16 * i) * 8 + g, 8);
        hp_mma_u8s8_16x8x32(sum, ra, rb);
    }
    for (int i = 0; i < 4; i++) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
}

cudaError_t probe_mma(int32_t *d, const uint8_t *a, const int8_t *b, int32_t k, cudaStream_t s) {
    return HP_LAUNCH(product, 1, 32, s, d, a, b, k);
}

static __global__ void rounds(__nv_bfloat16 *bf16, __half *f16, float *from_bf16, float *from_f16,
                              const float *x, int32_t n) {
    const int32_t i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    bf16[i] = __float2bfloat16(x[i]);
    f16[i] = __float2half(x[i]);
    from_bf16[i] = __bfloat162float(bf16[i]);
    from_f16[i] = __half2float(f16[i]);
}

cudaError_t probe_round(uint16_t *bf16, uint16_t *f16, float *from_bf16, float *from_f16, const float *x,
                        int32_t n, cudaStream_t s) {
    return HP_LAUNCH(rounds, ((unsigned)n + 255) / 256, 256, s, (__nv_bfloat16 *)bf16, (__half *)f16,
                     from_bf16, from_f16, x, n);
}

static __global__ void stuck(int32_t half) {
    if ((int32_t)threadIdx.x < half)
        __syncwarp();
    else
        __syncthreads();
}

cudaError_t probe_stuck(cudaStream_t s) {
    return HP_LAUNCH(stuck, 1, 32, s, 16);
}

static __global__ void follow(int32_t *const *where, int32_t *to) {
    *to = **where;
}

cudaError_t probe_follow(int32_t *const *where, int32_t *to, cudaStream_t s) {
    return HP_LAUNCH(follow, 1, 1, s, where, to);
}
