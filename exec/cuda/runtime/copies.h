/* copies.h - asynchronous copies of 16 bytes from device memory to a block's shared memory (PTX ISA,
 * "cp.async"). Both addresses are 16-byte aligned.
 *
 * A thread's copies since its last commit form a group. After waiting for all groups but the newest N, the
 * thread sees what it copied; after a __syncthreads() the whole block does. */
#ifndef HP_COPIES_H
#define HP_COPIES_H

#include "exec/cuda/runtime/cuda_runtime_kernel.h"

#if defined(HP_CUDA_STANDIN)

static inline void hp_copy_16(void *shared, const void *from) {
    standin_copy_16(shared, from);
}
static inline void hp_copies_commit() {
    standin_copies_commit();
}
template <int N> static inline void hp_copies_wait() {
    standin_copies_wait(N);
}
static inline void hp_fetch_line(const void *) {}

#else

static __device__ __forceinline__ void hp_copy_16(void *shared, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"((uint32_t)__cvta_generic_to_shared(shared)), "l"(from)
                 : "memory");
}
static __device__ __forceinline__ void hp_copies_commit() {
    asm volatile("cp.async.commit_group;" : : : "memory");
}
template <int N> static __device__ __forceinline__ void hp_copies_wait() {
    asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory");
}
/* Prefetches the line of 128 bytes into the second-level cache. */
static __device__ __forceinline__ void hp_fetch_line(const void *at) {
    asm volatile("prefetch.global.L2 [%0];" : : "l"(at));
}

#endif

#endif
