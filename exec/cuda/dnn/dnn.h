/* dnn.h - convolutions through cuDNN's graph API: describes an operation, chooses an engine, and keeps its
 * plan ready to enqueue.
 *
 * All tensors are dense (N, H, W, C); filters (K, R, S, C/groups). cuDNN has few or no engines for tensors of
 * 2^31 elements or more, so such an operation is split into samples or strips of rows (dnn/strips.h), as one
 * plan. So is an operation whose good engines need more workspace than there is. Source: cuDNN 9 graph API;
 * NVIDIA, "cuDNN Developer Guide". */
#ifndef HP_DNN_H
#define HP_DNN_H

#include "exec/cuda/runtime/cuda.h"
#include "networks/graph/precision.h"
#include "plan/program/program.h"

typedef enum hp_dnn_kind { HP_DNN_FORWARD, HP_DNN_DGRAD, HP_DNN_WGRAD } hp_dnn_kind;

/* Precision to which float32 products may be rounded. */
typedef enum hp_dnn_math {
    HP_DNN_STRICT, /* float32 */
    HP_DNN_TF32    /* factors rounded to 10 bits of mantissa, sums in float32 */
} hp_dnn_math;

static inline hp_dnn_math hp_dnn_math_of(int32_t prec) { /* hp_prec */
    return prec == HP_PREC_TF32 ? HP_DNN_TF32 : HP_DNN_STRICT;
}

typedef struct hp_dnn_conv {
    int32_t kind;       /* hp_dnn_kind */
    int32_t dtype;      /* type of x, w and y (and their gradients): HP_F32, HP_BF16,
                         * HP_F16; sums are float32 */
    int32_t math;       /* hp_dnn_math; for float32 only */
    int64_t n;          /* samples */
    int32_t ih, iw, ic; /* input */
    int32_t oh, ow, oc; /* output */
    int32_t kh, kw, stride_h, stride_w, dil_h, dil_w, groups;
    struct {
        int32_t top, left, bottom, right; /* negative: rows and columns that are not read */
    } pad;
    /* Elements between rows and between samples of x where x is part of a larger map; 0: dense. */
    int64_t x_row, x_sample;
    /* Forward: y = act(conv(x, w) + bias + z), where z has y's size and dtype. Gradients: bias
     * and act must be 0. */
    bool bias;         /* one per channel of y, float32 */
    bool add;          /* forward: adds z; gradients: adds to the contents of dx, dw */
    int32_t act;       /* hp_act: HP_ACT_NONE, HP_ACT_RELU, HP_ACT_RELU6; no others are fused */
    int32_t alignment; /* alignment of x, y and z in bytes: a power of 2; 0 = 16 */
} hp_dnn_conv;

static inline int64_t hp_dnn_x_row(const hp_dnn_conv *c) {
    return c->x_row ? c->x_row : (int64_t)c->iw * c->ic;
}
static inline int64_t hp_dnn_x_sample(const hp_dnn_conv *c) {
    return c->x_sample ? c->x_sample : c->ih * hp_dnn_x_row(c);
}

typedef struct hp_dnn hp_dnn;
typedef struct hp_dnn_plan hp_dnn_plan; /* lives as long as its hp_dnn */

/* Opens cuDNN on this process's GPU, with the choices of earlier runs. The user's cache keeps those with the
 * kernels that cuDNN compiled (~/.cache/hplan/cudnn-*.json, *.plan: safe to delete). Errors: HP_EUNAVAIL. */
hp_status hp_dnn_open(hp_cuda *cuda, hp_dnn **dnn, hp_error *err);
/* Opens cuDNN for a GPU described by JSON (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). Plans can then be made
 * and queried but not run or timed; no GPU is needed. compile: compiles kernels that cuDNN builds at run
 * time, seconds each; else the heuristics are believed. libcuda.so.1 must be found; its stub suffices.
 * Errors: HP_EUNAVAIL, HP_EDATA. */
hp_status hp_dnn_open_like(const char *json, bool compile, hp_dnn **dnn, hp_error *err);
void hp_dnn_close(hp_dnn *dnn);

/* Plans an operation. Tries the first engines that heuristics name and that qualify: deterministic, in
 * the allowed math, within `workspace` bytes. Takes the fastest where there is a GPU to measure it, and
 * remembers it: the same operation again costs nothing. Where no engine fuses the epilogue, the plan is
 * of the convolution alone: hp_dnn_plan_fused. Errors: HP_EUNAVAIL, naming the operation and why
 * engines were refused. */
hp_status hp_dnn_plan_conv(hp_dnn *dnn, const hp_dnn_conv *c, int64_t workspace, hp_dnn_plan **plan,
                           hp_error *err);
/* Does the plan add bias and z and apply act? If not, the caller must apply all three afterwards. */
bool hp_dnn_plan_fused(const hp_dnn_plan *p);
int64_t hp_dnn_plan_workspace(const hp_dnn_plan *p);
/* cuDNN's index of the engine; 0: the generic one, without tensor cores. */
int64_t hp_dnn_plan_engine(const hp_dnn_plan *p);
/* For example "cudnn engine 46, tensor cores". Valid as long as the plan. */
const char *hp_dnn_plan_name(const hp_dnn_plan *p);

typedef struct hp_dnn_data { /* device addresses; for gradients dx, dy, dw take the places of x, y, w */
    void *x, *w, *y, *z, *bias, *workspace;
} hp_dnn_data;

/* Library kernels may assume workspaces aligned as cudaMalloc aligns, but the arena's buffers are only
 * aligned to 64 bytes. So a workspace begins at its first multiple of this. */
enum { HP_CUDA_PLACE = 256 };
static inline int64_t hp_cuda_workspace_left(int64_t bytes) {
    const int64_t lost = HP_CUDA_PLACE - 64;
    return bytes > lost ? bytes - lost : 0;
}
static inline void *hp_cuda_workspace_at(void *p) {
    return (void *)(((uintptr_t)p + HP_CUDA_PLACE - 1) & ~(uintptr_t)(HP_CUDA_PLACE - 1));
}
/* Enqueues on the GPU's compute stream. */
hp_status hp_dnn_run(hp_dnn_plan *p, const hp_dnn_data *data, hp_error *err);

/* Shares choices between ranks before the first run. Export: choices in use that no rank has announced
 * yet, as JSON text that the caller frees; NULL: none. Import: adopts announced choices and replans
 * operations that use other engines. A choice that does not fit the planned memory, or of another GPU or
 * cuDNN version, is skipped. Errors: HP_EDATA, HP_EUNAVAIL. */
char *hp_dnn_choices_export(const hp_dnn *dnn);
hp_status hp_dnn_choices_import(hp_dnn *dnn, const char *text, hp_error *err);

#endif
