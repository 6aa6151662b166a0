/* infer.h - layers of a deployed graph (plan/graph/deploy.h) on this machine's processor: which kernel a task gets,
 * and its constants, once, before the first step.
 *
 * A kernel reads b->x[k], b->shape and writes b->y; the elements are b->x_dtype[k] and b->y_dtype, dense (N,
 * H, W, C). What it needs beside is in the layer's pack buffer, filled by the first task of the layer, and in
 * `self`. Results must not depend on how the output was cut into boxes: bit for bit where the output or the
 * inputs are quantised. */
#ifndef HP_INFER_H
#define HP_INFER_H

#include "exec/device/bind.h"
#include "exec/data/weights/constants.h"
#include "exec/device/kernels/kernels.h"
#include "exec/device/cpu/onednn.h"
#include "plan/base/arena.h"

typedef struct hp_infer {
    const hp_device_config *config;
    hp_constants *constants;
    hp_arena *arena;           /* for `self`; lives as long as the device */
    hp_onednn *library;        /* NULL on ref */
    const hp_kernels *kernels; /* NULL on ref */
    bool *packed;              /* per layer: pack buffer is filled */
} hp_infer;

typedef struct hp_infer_kernel {
    hp_status (*run)(void *self, const hp_bound *b, hp_error *err);
    void *self;
    const char *name; /* static or in the arena: "brgconv:avx512_core_vnni", "own depthwise u8" */
} hp_infer_kernel;

/* Errors: HP_EUNAVAIL (no acceptable kernel), HP_EPLAN (needs more memory than was planned), HP_EDATA. */
typedef hp_status hp_infer_prepare_fn(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err);

/* infer.c: by layer operator; NULL where no deployed graph has it. */
extern hp_infer_prepare_fn *const hp_infer_cpu[HP_LAYER_OPS];
extern hp_infer_prepare_fn *const hp_infer_ref[HP_LAYER_OPS];

/* infer_conv*.c: y = act(conv(x, w) + bias [+ y]), all stores; strided, grouped, depthwise, any padding. */
hp_infer_prepare_fn hp_infer_conv_cpu, hp_infer_convt_cpu, hp_infer_linear_cpu;
/* infer/ref_matrix.c: the same from the definition. */
hp_infer_prepare_fn hp_infer_conv_ref, hp_infer_convt_ref, hp_infer_linear_ref;

/* infer_point*.c, infer_pool*.c, ...: every other layer; one portable kernel serves both devices. */
hp_infer_prepare_fn hp_infer_bn, hp_infer_scale, hp_infer_act, hp_infer_add, hp_infer_mul, hp_infer_quant,
    hp_infer_dequant;
hp_infer_prepare_fn hp_infer_maxpool, hp_infer_avgpool, hp_infer_adaptpool, hp_infer_resize, hp_infer_concat,
    hp_infer_pad, hp_infer_softmax;

#endif
