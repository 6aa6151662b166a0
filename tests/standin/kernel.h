/* kernel.h - the language of exec/cuda/runtime/cuda_runtime_kernel.h on a processor. A launch is work for the
 * stream's thread, which runs the blocks one after another, with a block's threads as fibers that switch only
 * where they wait for each other (fiber.h).
 *
 * Device memory has addresses that fault (runtime.h). A launch translates its arguments to the real
 * addresses: pointers, and pointers within structs passed by value. A pointer that a kernel reads from memory
 * is not translated: it faults, and the stand-in reports that. */
#ifndef HP_TESTS_KERNEL_H
#define HP_TESTS_KERNEL_H

#include "tests/standin/cuda_runtime_api.h"
#include "tests/standin/kernel_math.h"
#include "tests/standin/kernel_types.h"

#include <functional>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tuple>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __constant__    const
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__   static thread_local /* a thread runs its blocks one by one, with all their threads */

extern __thread uint3 threadIdx, blockIdx, blockDim, gridDim;
enum { warpSize = 32 };

/* --- synchronisation --- */

enum { STANDIN_SLOT = 32 }; /* bytes that a thread can show to its warp */

void __syncthreads();
/* All threads of the warp in `mask` must call it, except those that do not exist. */
void __syncwarp(unsigned mask = 0xffffffffu);
/* A __syncwarp, after which every thread can read what the others have shown: slot[lane * STANDIN_SLOT]. The
 * slots stay valid until the thread's next call but one. */
const unsigned char *standin_show(const void *mine, size_t bytes, unsigned mask);
int standin_lane();
/* Ends the process: the kernel uses a missing lane. */
void standin_check_lane(int lane, unsigned mask);

/* exec/cuda/runtime/copies.h: in some blocks copies complete at once, in others when the thread waits. So a
 * kernel that reads too early, or overwrites data still in use, fails in one of the two. */
void standin_copy_16(void *shared, const void *from);
void standin_copies_commit();
void standin_copies_wait(int newest);

template <typename T> T standin_shuffle(unsigned mask, T mine, int from) {
    static_assert(sizeof(T) <= STANDIN_SLOT, "wider than a register");
    T theirs;
    const unsigned char *slots = standin_show(&mine, sizeof mine, mask);
    standin_check_lane(from, mask);
    memcpy(&theirs, slots + from * STANDIN_SLOT, sizeof theirs);
    return theirs;
}

/* Lanes outside the segment of `width` lanes yield the lane's own value. */
template <typename T> T __shfl_xor_sync(unsigned mask, T mine, int lanes, int width = 32) {
    const int lane = standin_lane(), from = lane ^ lanes;
    return standin_shuffle(mask, mine, from < (lane & -width) + width ? from : lane);
}

template <typename T> T __shfl_down_sync(unsigned mask, T mine, unsigned by, int width = 32) {
    const int lane = standin_lane(), from = lane + (int)by;
    return standin_shuffle(mask, mine, from < (lane & -width) + width ? from : lane);
}

template <typename T> T __shfl_up_sync(unsigned mask, T mine, unsigned by, int width = 32) {
    const int lane = standin_lane(), from = lane - (int)by;
    return standin_shuffle(mask, mine, from >= (lane & -width) ? from : lane);
}

template <typename T> T __shfl_sync(unsigned mask, T mine, int from, int width = 32) {
    return standin_shuffle(mask, mine, (standin_lane() & -width) + (from & (width - 1)));
}

inline void __threadfence() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Integers only; streams are threads. */
template <typename T, typename U> T atomicAdd(T *at, U by) {
    static_assert(std::is_integral<T>::value, "sums of floats have a fixed order");
    return __atomic_fetch_add(at, (T)by, __ATOMIC_SEQ_CST);
}

template <typename T, typename U> T atomicMax(T *at, U with) {
    static_assert(std::is_integral<T>::value, "of integers");
    T now = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    while (now < (T)with &&
           !__atomic_compare_exchange_n(at, &now, (T)with, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return now;
}

template <typename T, typename U> T atomicExch(T *at, U with) {
    return __atomic_exchange_n(at, (T)with, __ATOMIC_SEQ_CST);
}

/* --- launches --- */

/* Translates every word of an argument that is a device address. */
void standin_translate(void *argument, size_t bytes);
/* A pointer argument must be one that a GPU can follow: NULL, device memory or page-locked memory. */
void standin_check_pointer(const void *p);
cudaError_t standin_launch(dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> thread);

template <typename T> T standin_argument(T value) {
    static_assert(std::is_trivially_copyable<T>::value, "arguments of kernels are copied byte by byte");
    if constexpr (std::is_pointer<T>::value) standin_check_pointer((const void *)value);
    if constexpr (sizeof(T) >= sizeof(void *)) standin_translate((void *)&value, sizeof value);
    return value;
}

template <typename... P, typename... A>
cudaError_t standin_start(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream, A... argument) {
    static_assert(sizeof...(P) == sizeof...(A), "as many arguments as the kernel takes");
    std::tuple<std::remove_cv_t<P>...> arguments(standin_argument<std::remove_cv_t<P>>(argument)...);
    return standin_launch(grid, block, stream, [kernel, arguments] { std::apply(kernel, arguments); });
}

#define HP_LAUNCH(kernel, grid, block, stream, ...)                                                          \
    (standin_start((kernel), (grid), (block), (stream), __VA_ARGS__), cudaGetLastError())

#endif
