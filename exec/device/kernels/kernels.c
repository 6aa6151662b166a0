/* kernels.c - chooses the kernels' instruction sets by what the processor reports. */
#include "exec/device/kernels/kernels.h"

#include "exec/device/infer/infer_loops.h"
#include "exec/device/kernels/panel.h"

#define FAMILIES(isa)                                                                                        \
    extern const hp_panel_family hp_panel_U8_##isa, hp_panel_F32_##isa, hp_panel_BF16_##isa,                 \
        hp_panel_F16_##isa
FAMILIES(base);
FAMILIES(avx2);
FAMILIES(avx512);
extern const hp_panel_family hp_panel_U8_vnni, hp_panel_BF16_bf16;

#define PANEL(name, bytes, floats, bf16)                                                                     \
    const hp_panel_kernels hp_panel_##name = {.isa = #name,                                                  \
                                              .of = {[HP_U8] = &hp_panel_U8_##bytes,                         \
                                                     [HP_F32] = &hp_panel_F32_##floats,                      \
                                                     [HP_F16] = &hp_panel_F16_##floats,                      \
                                                     [HP_BF16] = &hp_panel_BF16_##bf16}}
PANEL(base, base, base, base);
PANEL(avx2, avx2, avx2, avx2);
PANEL(avx512, avx512, avx512, avx512);
PANEL(vnni, vnni, avx512, avx512);
PANEL(bf16, vnni, avx512, bf16);

/* Best first; the last runs everywhere. */
typedef enum processor { BF16, VNNI, AVX512, AVX2, BASE, PROCESSORS } processor;

static const hp_kernels sets[PROCESSORS] = {
    [BF16] = {&hp_f32_kernels_avx512, &hp_infer_loops_avx512, &hp_panel_bf16},
    [VNNI] = {&hp_f32_kernels_avx512, &hp_infer_loops_avx512, &hp_panel_vnni},
    [AVX512] = {&hp_f32_kernels_avx512, &hp_infer_loops_avx512, &hp_panel_avx512},
    [AVX2] = {&hp_f32_kernels_avx2, &hp_infer_loops_avx2, &hp_panel_avx2},
    [BASE] = {&hp_f32_kernels_base, &hp_infer_loops_base, &hp_panel_base},
};

static processor this_processor(void) {
#if defined(__x86_64__)
    /* GCC 12's __builtin_cpu_supports needs literals, and clang 14 knows fewer of them, so all are
     * queried alike here. */
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        if (!__builtin_cpu_supports("avx512vnni")) return AVX512;
        return __builtin_cpu_supports("avx512bf16") ? BF16 : VNNI;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return AVX2;
#endif
    return BASE;
}

const hp_kernels *hp_kernels_pick(void) {
    return &sets[this_processor()];
}
