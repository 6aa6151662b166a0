/* kernels_f32.c - the float32 kernels of one instruction set: compiled once per HP_ISA, see kernels.h. Each
 * family is a file of static functions that only this file includes. */
#include "exec/device/device_act.h"
#include "exec/device/kernels/kernels.h"

#ifndef HP_ISA
#define HP_ISA base
#endif

#include "exec/device/kernels/isa_vec.inc"
#include "exec/device/kernels/isa_point.inc"
#include "exec/device/kernels/isa_sum.inc"
#include "exec/device/kernels/isa_norm.inc"
#include "exec/device/kernels/isa_pool.inc"
#include "exec/device/kernels/isa_gemm.inc"
#include "exec/device/kernels/isa_winograd.inc"
#include "exec/device/kernels/isa_gradient.inc"
#include "exec/device/kernels/isa_any.inc"
#include "exec/device/kernels/isa_layernorm.inc"
#include "exec/device/kernels/isa_attention.inc"

#define NAME_(isa)   hp_f32_kernels_##isa
#define NAME(isa)    NAME_(isa)
#define STRING_(isa) #isa
#define STRING(isa)  STRING_(isa)

const hp_f32_kernels NAME(HP_ISA) = {
    .isa = STRING(HP_ISA),
    .point = {.clamp = point_clamp,
              .clamp_bwd = point_clamp_bwd,
              .act = point_act,
              .act_bwd = point_act_bwd,
              .add = point_add,
              .accum = point_accum,
              .accum_wide = point_accum_wide,
              .scale = point_scale,
              .squares = point_squares,
              .update =
                  {
#define STATE(...)
#define OPTIMIZER(id, name, function, ...) [HP_##id] = point_##function,
#include "networks/graph/optimizers.def"
                  }},
    .norm = {.sums = norm_sums,
             .add_sums = norm_add_sums,
             .apply = norm_apply,
             .bwd_sums = norm_bwd_sums,
             .bwd_apply = norm_bwd_apply},
    .pool = {.max = pool_max, .max_bwd = pool_max_bwd, .mean = pool_mean, .mean_bwd = pool_mean_bwd},
    .sum = {.rows = sum_of_rows, .listed = sum_of_listed},
    .conv = {.wino_pack = wino_pack,
             .wino = wino_fwd,
             .wino_bwdw = wino_bwdw,
             .gemm_bwdw = gradient_bwdw,
             .any = any_fwd,
             .any_bwd = any_bwd,
             .any_bwdw = any_bwdw},
    .layernorm = {.fwd = layernorm_fwd, .bwd = layernorm_bwd},
    .attend = {.fwd = attend_fwd, .bwd = attend_bwd},
};
