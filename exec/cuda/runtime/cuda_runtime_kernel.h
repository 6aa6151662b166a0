/* cuda_runtime_kernel.h - how a .cu file of this folder is written, so that it runs on a GPU and, thread by thread, on the
 * stand-in that tests it on a processor (tests/standin/).
 *
 * Kernels are `static __global__ void`, started by HP_LAUNCH from launchers that kernels.h declares, which
 * are extern "C". They use threadIdx, blockIdx, blockDim, gridDim, __syncthreads, __shared__ arrays of
 * constant size, __shfl_sync, __shfl_xor_sync and __shfl_down_sync by whole warps, integer atomics, and what is here. Sums
 * are taken in a fixed order: no atomics of floats. Offsets into tensors are int64_t. Addresses of the device
 * come as arguments of the kernel, by themselves or in a struct, never from memory: the stand-in translates
 * them there. There is no dynamic shared memory. */
#ifndef HP_CUDA_RUNTIME_KERNEL_H
#define HP_CUDA_RUNTIME_KERNEL_H

#if defined(HP_CUDA_STANDIN)
#include HP_CUDA_STANDIN /* the header that plays these parts */
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
/* Its cudaError_t. The formatter would take the brackets of a launch for comparisons. */
/* clang-format off */
#define HP_LAUNCH(kernel, grid, block, stream, ...) \
    ((kernel)<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__), cudaGetLastError())
/* clang-format on */
#endif

#include <stdint.h>

#endif
