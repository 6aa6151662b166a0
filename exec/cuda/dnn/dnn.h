/* dnn.h - convolutions through cuDNN's graph API: what an operation is, which engine computes it, and that
 * engine's plan, ready to be enqueued.
 *
 * All tensors are dense (N, H, W, C); filters (K, R, S, C/groups). cuDNN is told nothing of 2^31 elements or
 * more, for which it has few engines or none: such an operation becomes several, of samples or of strips of
 * rows (dnn/strips.h), as one plan. So does one whose good engines want more workspace than there is.
 * Source: cuDNN 9 graph API; NVIDIA, "cuDNN Developer Guide". */
#ifndef HP_DNN_H
#define HP_DNN_H

#include "exec/cuda/runtime/cuda.h"
#include "networks/graph/precision.h"
#include "plan/program/program.h"

typedef enum hp_dnn_kind { HP_DNN_FORWARD, HP_DNN_DGRAD, HP_DNN_WGRAD } hp_dnn_kind;

/* What float32 products may be rounded to. */
typedef enum hp_dnn_math {
    HP_DNN_STRICT, /* float32 */
    HP_DNN_TF32    /* factors rounded to 10 bits of mantissa, sums in float32 */
} hp_dnn_math;

static inline hp_dnn_math hp_dnn_math_of(int32_t prec) { /* hp_prec */
    return prec == HP_PREC_TF32 ? HP_DNN_TF32 : HP_DNN_STRICT;
}

typedef struct hp_dnn_conv {
    int32_t kind;       /* hp_dnn_kind */
    int32_t dtype;      /* of x, w and y (and their gradients): HP_F32, HP_BF16, HP_F16; sums are float32 */
    int32_t math;       /* hp_dnn_math; of float32 alone */
    int64_t n;          /* samples */
    int32_t ih, iw, ic; /* input */
    int32_t oh, ow, oc; /* output */
    int32_t kh, kw, stride_h, stride_w, dil_h, dil_w, groups;
    int32_t pad_top, pad_left, pad_bottom, pad_right; /* negative: rows and columns that are not read */
    /* Elements from row to row and from sample to sample of x, where it is part of a larger map; 0: dense. */
    int64_t x_row, x_sample;
    /* Forward: y = act(conv(x, w) + bias + z), z of y's size and dtype. Gradients: bias and act must be 0. */
    bool bias;         /* of the channels of y, float32 */
    bool add;          /* forward: z; gradients: to what dx, dw hold */
    int32_t act;       /* hp_act: HP_ACT_NONE, HP_ACT_RELU, HP_ACT_RELU6; others are not fused */
    int32_t alignment; /* bytes, of the addresses of x, y and z: a power of 2; 0 = 16 */
} hp_dnn_conv;

static inline int64_t hp_dnn_x_row(const hp_dnn_conv *c) {
    return c->x_row ? c->x_row : (int64_t)c->iw * c->ic;
}
static inline int64_t hp_dnn_x_sample(const hp_dnn_conv *c) {
    return c->x_sample ? c->x_sample : c->ih * hp_dnn_x_row(c);
}

typedef struct hp_dnn hp_dnn;
typedef struct hp_dnn_plan hp_dnn_plan; /* lives as long as its hp_dnn */

/* Of this process's GPU, with the choices of earlier runs, which the user's cache keeps with the kernels that
 * cuDNN compiled for them (~/.cache/hplan/cudnn-*.json, *.plan: may be deleted). Errors: HP_EUNAVAIL. */
hp_status hp_dnn_open(hp_cuda *cuda, hp_dnn **dnn, hp_error *err);
/* Of one that a JSON text describes (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION): then plans can be made and
 * asked, not run or timed, and no GPU is needed. compile: kernels that cuDNN compiles at run time, seconds
 * each, are; else what heuristics say of them is believed. libcuda.so.1 has to be found, but its stub does.
 * Errors: HP_EUNAVAIL, HP_EDATA. */
hp_status hp_dnn_open_like(const char *json, bool compile, hp_dnn **dnn, hp_error *err);
void hp_dnn_close(hp_dnn *dnn);

/* The plan of an operation: the fastest of the first engines that heuristics name and that compute it as
 * asked (deterministic, in the math that is allowed, within `workspace` bytes), measured where there is a GPU
 * and remembered: the same operation again costs nothing. Where no engine fuses what follows the convolution
 * it is a plan of the convolution alone: hp_dnn_plan_fused. Errors: HP_EUNAVAIL, naming the operation and why
 * engines were refused. */
hp_status hp_dnn_plan_conv(hp_dnn *dnn, const hp_dnn_conv *c, int64_t workspace, hp_dnn_plan **plan,
                           hp_error *err);
/* Does the plan add bias and z and apply act? If not, the caller applies all three after it. */
bool hp_dnn_plan_fused(const hp_dnn_plan *p);
int64_t hp_dnn_plan_workspace(const hp_dnn_plan *p);
/* cuDNN's number of the engine; 0: the generic one, without tensor cores. */
int64_t hp_dnn_plan_engine(const hp_dnn_plan *p);
/* "cudnn engine 46, tensor cores": as long as the plan. */
const char *hp_dnn_plan_name(const hp_dnn_plan *p);

typedef struct hp_dnn_data { /* device addresses; of a gradient's kind: dx, dy, dw in their places */
    void *x, *w, *y, *z, *bias, *workspace;
} hp_dnn_data;

/* The libraries' kernels may count on workspaces beginning where cudaMalloc's memory does; the arena's
 * buffers begin at multiples of 64 bytes only: what is left from the next such place on. */
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

/* Choices made so far as JSON, and choices to start from, so that all ranks and all runs use the same. Those
 * of another GPU or another cuDNN are left alone. The text is the caller's to free. Errors: HP_EDATA. */
char *hp_dnn_choices_text(const hp_dnn *dnn);
hp_status hp_dnn_choices_take(hp_dnn *dnn, const char *text, hp_error *err);
/* Between ranks, before the first run: the choices in use that no rank has told of, as such a text, NULL when
 * there are none; and those another rank (or this one) has told of, which are this one's from then on: plans
 * of other engines are made anew. What does not fit the memory planned here stays as it was. Errors:
 * HP_EDATA, HP_EUNAVAIL. */
char *hp_dnn_choices_export(const hp_dnn *dnn);
hp_status hp_dnn_choices_import(hp_dnn *dnn, const char *text, hp_error *err);

#endif
