/* probe.h - kernels that test the stand-in itself: launchers like those of exec/cuda/. */
#ifndef HP_TESTS_PROBE_H
#define HP_TESTS_PROBE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts kernels, copies and fills submitted by calls of their own; graph launches, and what came by them;
 * and the kernels begun by either. */
typedef struct probe_calls {
    int64_t given, graphs, replayed, kernels;
} probe_calls;
void probe_count_calls(probe_calls *calls);

/* A kernel that ends once *flag, in page-locked memory, is not 0. */
cudaError_t probe_wait(const int32_t *flag, cudaStream_t s);
/* sum[block] of x, n in total, with `threads` threads each, not a power of two; `broken`: a
 * barrier is missing. */
cudaError_t probe_sum(int32_t *sum, const int32_t *x, int32_t n, unsigned threads, int broken,
                      cudaStream_t s);
/* Each warp's sum in all its lanes, by halves; and sums of segments of 8, in their first lanes. */
cudaError_t probe_warps(int32_t *sum, int32_t *segments, const int32_t *x, unsigned threads, cudaStream_t s);
/* t (columns, rows) = x (rows, columns), by tiles of 16 x 16; both are in a struct. */
typedef struct probe_matrices {
    int32_t rows, columns;
    const float *x;
    float *t;
} probe_matrices;
cudaError_t probe_transpose(const probe_matrices *m, cudaStream_t s);
cudaError_t probe_count(unsigned long long *bins, const uint8_t *x, int32_t n, cudaStream_t s);
/* d (16, 8) += a (16, k) b (k, 8), row-major; k: a multiple of 32. */
cudaError_t probe_mma(int32_t *d, const uint8_t *a, const int8_t *b, int32_t k, cudaStream_t s);
/* Converts both ways; bf16, f16 as bits. */
cudaError_t probe_round(uint16_t *bf16, uint16_t *f16, float *from_bf16, float *from_f16, const float *x,
                        int32_t n, cudaStream_t s);
/* Half of a warp waits for the warp, the other half for the block. */
cudaError_t probe_stuck(cudaStream_t s);
/* Follows a pointer stored in memory. */
cudaError_t probe_follow(int32_t *const *where, int32_t *to, cudaStream_t s);

#ifdef __cplusplus
}
#endif

#endif
