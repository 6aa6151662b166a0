/* panel_pick.c - chooses the instruction set of the panel kernels from what the processor reports. */
#include "exec/device/kernels/panel.h"

#if defined(__x86_64__)
/* GCC 12's __builtin_cpu_supports wants literals, and clang 14 knows fewer of them: all are asked alike here.
 */
static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

const hp_panel_kernels *hp_panel_pick(void) {
    __builtin_cpu_init();
    if (has_avx512() && __builtin_cpu_supports("avx512vnni"))
        return __builtin_cpu_supports("avx512bf16") ? &hp_panel_bf16 : &hp_panel_vnni;
    if (has_avx512()) return &hp_panel_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &hp_panel_avx2;
    return &hp_panel_base;
}
#else
const hp_panel_kernels *hp_panel_pick(void) {
    return &hp_panel_base;
}
#endif
