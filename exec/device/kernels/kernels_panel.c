/* kernels_panel.c - the innermost loops of inference's matrix products for one instruction set: compiled once
 * per HP_ISA, see panel.h. Each family is a file of static functions that only this file includes. Compiled
 * without contraction of products and sums: what is fused is said. */
#include "exec/device/act.h"
#include "exec/device/kernels/panel.h"
#include "exec/device/kernels/kernels.h"

#include <math.h>
#include <string.h>

#ifndef HP_ISA
#define HP_ISA base
#endif

typedef float real;
static const hp_dtype REAL_DTYPE = HP_F32;
#define REAL_ACT(name) hp_act_##name##_f32

#include "exec/device/kernels/isa_vec.inc"
#include "exec/device/kernels/loops_elements.inc"
#include "exec/device/kernels/loops_act.inc"
#include "exec/device/kernels/isa_dot.inc"
#include "exec/device/kernels/isa_finish.inc"
#include "exec/device/kernels/isa_panel.inc"
#include "exec/device/kernels/isa_panel_fast.inc"
#include "exec/device/kernels/isa_depthwise.inc"
#if defined(__AVX512VNNI__)
#include "exec/device/kernels/isa_depthwise_vnni.inc"
#else
#include "exec/device/kernels/isa_depthwise_bytes.inc"
#endif

/* --- a function per input, width and number of pixels --- */

#define TILE(how, type, vecs, rows)                                                                          \
    static void how##_##type##_##vecs##_##rows(const hp_panel_tile *t) {                                     \
        how(HP_##type, rows, vecs *HP_PANEL_LANES, t);                                                       \
    }
#define TILES(how, type, vecs)                                                                               \
    TILE(how, type, vecs, 1)                                                                                 \
    TILE(how, type, vecs, 2)                                                                                 \
    TILE(how, type, vecs, 3)                                                                                 \
    TILE(how, type, vecs, 4)                                                                                 \
    TILE(how, type, vecs, 5)                                                                                 \
    TILE(how, type, vecs, 6)
#define WIDTHS(how, type)                                                                                    \
    TILES(how, type, 1)                                                                                      \
    TILES(how, type, 2)                                                                                      \
    TILES(how, type, 3)                                                                                      \
    TILES(how, type, 4)
#define NAMES(how, type, vecs)                                                                               \
    {                                                                                                        \
        how##_##type##_##vecs##_1, how##_##type##_##vecs##_2, how##_##type##_##vecs##_3,                     \
            how##_##type##_##vecs##_4, how##_##type##_##vecs##_5, how##_##type##_##vecs##_6                  \
    }
#define TABLE(how, type)                                                                                     \
    { NAMES(how, type, 1), NAMES(how, type, 2), NAMES(how, type, 3), NAMES(how, type, 4) }

WIDTHS(tile, U8)
WIDTHS(tile, F32)
WIDTHS(tile, BF16)
WIDTHS(tile, F16)
WIDTHS(tile_fast, U8)
WIDTHS(tile_fast, F32)

static void depth_f32(const hp_depthwise_row *r) {
    depth_floats(HP_F32, r);
}

static void depth_f16(const hp_depthwise_row *r) {
    depth_floats(HP_F16, r);
}

static void depth_bf16(const hp_depthwise_row *r) {
    depth_floats(HP_BF16, r);
}

static void narrow_bf16(uint16_t *to, const float *from, int64_t n) {
    store_bf16(to, from, n);
}

static void narrow_f16(uint16_t *to, const float *from, int64_t n) {
    store_f16(to, from, n);
}

#define NAME_(isa)   hp_panel_##isa
#define NAME(isa)    NAME_(isa)
#define STRING_(isa) #isa
#define STRING(isa)  STRING_(isa)

const hp_panel_kernels NAME(HP_ISA) = {
    .isa = STRING(HP_ISA),
    .tile = {[HP_U8] = TABLE(tile, U8),
             [HP_F32] = TABLE(tile, F32),
             [HP_BF16] = TABLE(tile, BF16),
             [HP_F16] = TABLE(tile, F16)},
    .fast = {[HP_U8] = TABLE(tile_fast, U8), [HP_F32] = TABLE(tile_fast, F32)},
    .depthwise_bytes = depth_bytes,
    .depthwise = {[HP_F32] = depth_f32, [HP_BF16] = depth_bf16, [HP_F16] = depth_f16},
    .pack_depthwise = depth_pack,
    .to_bf16 = narrow_bf16,
    .to_f16 = narrow_f16,
};
