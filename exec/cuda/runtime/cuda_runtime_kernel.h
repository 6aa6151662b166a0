/* cuda_runtime_kernel.h - rules for .cu files, so that they run on a GPU and, thread by thread, on the
 * stand-in that tests them on a processor (tests/standin/).
 *
 * Kernels are `static __global__ void`, started by HP_LAUNCH from extern "C" launchers that kernels.h
 * declares. They use threadIdx, blockIdx, blockDim, gridDim, __syncthreads, __shared__ arrays of constant
 * size, __shfl_sync, __shfl_xor_sync and __shfl_down_sync by whole warps, integer atomics, and this header.
 * Sums have a fixed order: no float atomics. Offsets into tensors are int64_t. Device addresses come only as
 * kernel arguments, alone or in a struct, never from memory, because the stand-in translates them there.
 * There is no dynamic shared memory. */
#ifndef HP_CUDA_RUNTIME_KERNEL_H
#define HP_CUDA_RUNTIME_KERNEL_H

#if defined(HP_CUDA_STANDIN)
#include HP_CUDA_STANDIN /* a header that emulates the runtime */
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
/* From the stand-in's cudaError_t. The formatter would take the brackets of a launch for comparisons. */
/* clang-format off */
#define HP_LAUNCH(kernel, grid, block, stream, ...) \
    ((kernel)<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__), cudaGetLastError())
/* clang-format on */
#endif

#include <stdint.h>

#endif
