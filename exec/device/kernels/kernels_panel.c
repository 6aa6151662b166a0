/* kernels_panel.c - the innermost loops of inference's matrix products for one instruction set and one type
 * of input: compiled once for each pair of HP_ISA and HP_PANEL_INPUT (exec/exec.cmake), see panel.h. Each
 * family is a file of static functions; a type needs some of them. Compiled without contraction of products
 * and sums: fusing is explicit. */
#include "exec/device/device_act.h"
#include "exec/device/kernels/panel.h"
#include "exec/device/kernels/kernels.h"

#include <math.h>
#include <string.h>

#ifndef HP_ISA
#define HP_ISA         base
#define HP_PANEL_INPUT U8
#define HP_PANEL_BYTES 1
#define HP_PANEL_FAST  1
#endif

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

#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)
static const hp_dtype INPUT = PASTE(HP_, HP_PANEL_INPUT);

/* --- a function per width and number of pixels --- */

#define TILE(how, vecs, rows)                                                                                \
    static void how##_##vecs##_##rows(const hp_panel_tile *t) {                                              \
        how(INPUT, rows, vecs *HP_PANEL_LANES, t);                                                           \
    }
#define TILES(how, vecs)                                                                                     \
    TILE(how, vecs, 1)                                                                                       \
    TILE(how, vecs, 2)                                                                                       \
    TILE(how, vecs, 3)                                                                                       \
    TILE(how, vecs, 4)                                                                                       \
    TILE(how, vecs, 5)                                                                                       \
    TILE(how, vecs, 6)
#define WIDTHS(how)                                                                                          \
    TILES(how, 1)                                                                                            \
    TILES(how, 2)                                                                                            \
    TILES(how, 3)                                                                                            \
    TILES(how, 4)
#define NAMES_(how, vecs)                                                                                    \
    {                                                                                                        \
        how##_##vecs##_1, how##_##vecs##_2, how##_##vecs##_3, how##_##vecs##_4, how##_##vecs##_5,            \
            how##_##vecs##_6                                                                                 \
    }
#define NAMES(how, vecs) NAMES_(how, vecs)
#define TABLE(how)                                                                                           \
    { NAMES(how, 1), NAMES(how, 2), NAMES(how, 3), NAMES(how, 4) }

WIDTHS(tile)
#if HP_PANEL_FAST && defined(__AVX512BW__)
WIDTHS(tile_fast)
#define FAST tile_fast
#else
#define FAST tile
#endif

#if !HP_PANEL_BYTES
static void depth_row_of_numbers(const hp_depthwise_row *r) {
    depth_floats(INPUT, r);
}

static void narrow(uint16_t *to, const float *from, int64_t n) {
    if (INPUT == HP_BF16) store_bf16(to, from, n);
    if (INPUT == HP_F16) store_f16(to, from, n);
}
#endif

#define NAME_(input, isa) hp_panel_##input##_##isa
#define NAME(input, isa)  NAME_(input, isa)

const hp_panel_family NAME(HP_PANEL_INPUT, HP_ISA) = {
    .tile = TABLE(tile),
#if HP_PANEL_FAST
    .fast = TABLE(FAST),
#endif
#if HP_PANEL_BYTES
    .depthwise_bytes = depth_bytes,
    .pack_depthwise = depth_pack,
#else
    .depthwise = depth_row_of_numbers,
    .narrow = narrow,
#endif
};
