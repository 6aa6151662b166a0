/* cuda_runtime_device.h - inside of the cuda device: a task is a launch, prepared at open, that reads what changes from
 * step to step in device memory, so that a whole step can be captured and replayed.
 *
 * Tensors are dense (N, H, W, C) in their buffers' dtypes, as on every device. Bytes are the same bytes as on
 * the CPU, with the same zero points: products of bytes are summed exactly and what becomes of the sums is
 * the formula of exec/device/kernels/panel.h, so that INT8 results are those of the CPU bit for bit. */
#ifndef HP_CUDA_RUNTIME_DEVICE_H
#define HP_CUDA_RUNTIME_DEVICE_H

#include "exec/device/device_bind.h"
#include "exec/cuda/runtime/cuda.h"
#include "exec/data/weights/constants.h"
#include "base/arena.h"

/* What kernels read of a step (hp_step). */
typedef struct hp_cuda_step {
    int64_t step;
    int32_t replica, dropout;
    uint64_t seed;
    double loss_scale, clip_norm;
    hp_update_rates_f64 rates;
} hp_cuda_step;

struct hp_dnn; /* exec/cuda/dnn/dnn.h */
struct hp_lt;  /* exec/cuda/dnn/lt.h */

struct hp_device {
    hp_device_config config;
    hp_cuda *cuda;
    hp_arena *arena;
    struct hp_dnn *dnn;
    struct hp_lt *lt;
    hp_bound *bound;               /* per task */
    struct hp_cuda_launch *launch; /* per task */
    hp_cuda_step *step;            /* in device memory */
    hp_cuda_step *host_step;       /* page-locked */
    bool *packed;                  /* per layer of a deployed graph: its constants are there */
    float **angles;                /* per layer: of rotary positions, in device memory, or NULL */
};

/* Enqueues on d->cuda->compute. Never synchronises, never allocates. */
typedef hp_status hp_cuda_launch_fn(hp_device *d, const hp_bound *b, void *self, hp_error *err);

typedef struct hp_cuda_launch {
    hp_cuda_launch_fn *run;
    void *self;       /* in d->arena */
    const char *name; /* "cudnn engine 46", "own bn statistics" */
} hp_cuda_launch;

/* Chooses the launch of a task: builds plans, uploads constants. Errors: HP_EUNAVAIL (no acceptable kernel
 * for layer X), HP_EPLAN (needs more memory than was planned). */
typedef hp_status hp_cuda_prepare_fn(hp_device *d, const hp_bound *b, hp_cuda_launch *launch, hp_error *err);

/* By task, and by layer operator where the task is a layer's: NULL where there is none. */
extern hp_cuda_prepare_fn *const hp_cuda_tasks[HP_TASK_OPS]; /* pack, loss, accum, update, copy, zero */
extern hp_cuda_prepare_fn *const hp_cuda_forward[HP_LAYER_OPS],
    *const hp_cuda_backward[HP_LAYER_OPS], *const hp_cuda_backward_weights[HP_LAYER_OPS],
                                               *const hp_cuda_stats[HP_LAYER_OPS],
                                                   *const hp_cuda_backward_stats[HP_LAYER_OPS];
/* Of a deployed graph. */
extern hp_cuda_prepare_fn *const hp_cuda_infer_tasks[HP_TASK_OPS], *const hp_cuda_infer[HP_LAYER_OPS];

extern const hp_device_ops hp_device_cuda, hp_device_cuda_infer;

#endif
