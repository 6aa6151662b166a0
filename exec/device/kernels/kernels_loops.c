/* kernels_loops.c - the loops of one instruction set: compiled once per HP_ISA, see
 * exec/device/infer/infer_loops.h. Each family is a file of static functions that only this file includes.
 * They compute in float32. Compiled without contraction of products and sums, which would tell instruction
 * sets apart. */
#include "exec/device/device_act.h"
#include "exec/device/infer/infer_loops.h"
#include "exec/device/kernels/kernels.h"

#include <math.h>
#include <string.h>

#ifndef HP_ISA
#define HP_ISA base
#endif

enum { ROW = HP_INFER_ROW };

#include "exec/device/kernels/isa_vec.inc"
#include "exec/device/kernels/loops_store.inc"
#include "exec/device/kernels/loops_act.inc"
#include "exec/device/kernels/loops_point.inc"
#include "exec/device/kernels/loops_affine.inc"
#include "exec/device/kernels/loops_move.inc"
#include "exec/device/kernels/loops_join.inc"
#include "exec/device/kernels/loops_pool.inc"
#include "exec/device/kernels/loops_resize.inc"
#include "exec/device/kernels/loops_softmax.inc"
#include "exec/device/kernels/loops_dynamic.inc"

#define NAME_(isa)   hp_infer_loops_##isa
#define NAME(isa)    NAME_(isa)
#define STRING_(isa) #isa
#define STRING(isa)  STRING_(isa)

const hp_infer_loops NAME(HP_ISA) = {
    .isa = STRING(HP_ISA),
    .run = {[HP_BN] = affine_run,
            [HP_SCALE] = affine_run,
            [HP_ACT] = point_act,
            [HP_ADD] = point_add,
            [HP_MUL] = affine_mul,
            [HP_QUANT] = point_act,
            [HP_DEQUANT] = affine_run,
            [HP_MAXPOOL] = pool_max,
            [HP_AVGPOOL] = pool_mean,
            [HP_ADAPTPOOL] = pool_mean,
            [HP_RESIZE] = resize_run,
            [HP_CONCAT] = join_run,
            [HP_PAD] = move_pad,
            [HP_SOFTMAX] = softmax_run},
    .range = dynamic_range,
    .quantise = dynamic_quantise,
};
