/* kernels_f32.c - the float32 kernels of one instruction set: compiled once per HP_ISA, see kernels.h.
 * Each family is a file of static functions that only this file includes. */
#include "exec/device/kernels/kernels.h"

#ifndef HP_ISA
#define HP_ISA base
#endif

#include "exec/device/kernels/isa_vec.h"
#include "exec/device/kernels/isa_point.h"
#include "exec/device/kernels/isa_norm.h"
#include "exec/device/kernels/isa_pool.h"
#include "exec/device/kernels/isa_gemm.h"
#include "exec/device/kernels/isa_winograd.h"
#include "exec/device/kernels/isa_gradient.h"
#include "exec/device/kernels/isa_any.h"

#define NAME_(isa)   hp_kernels_##isa
#define NAME(isa)    NAME_(isa)
#define STRING_(isa) #isa
#define STRING(isa)  STRING_(isa)

const hp_kernels NAME(HP_ISA) = {
    .isa = STRING(HP_ISA),
    .point = {point_clamp, point_clamp_bwd, point_add, point_accum, point_scale, point_sgd},
    .norm = {norm_sums, norm_add_sums, norm_apply, norm_bwd_sums, norm_bwd_apply},
    .pool = {pool_max, pool_max_bwd, pool_mean, pool_mean_bwd},
    .conv = {wino_pack, wino_fwd, wino_bwdw, gradient_bwdw, any_bias_bwd, any_fwd, any_bwd, any_bwdw},
};
