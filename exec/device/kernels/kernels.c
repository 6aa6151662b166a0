/* kernels.c - chooses the kernels' instruction set from what the processor reports. */
#include "exec/device/kernels/kernels.h"

const hp_kernels *hp_kernels_pick(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return &hp_kernels_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &hp_kernels_avx2;
#endif
    return &hp_kernels_base;
}
