/* cuda_runtime_device.h - inside of the cuda device. A task is a launch, prepared at open, that reads
 * whatever changes between steps from device memory. So a whole step can be captured and replayed.
 *
 * Tensors are dense (N, H, W, C) in their buffers' dtypes, as on every device. Bytes and zero points are
 * those of the CPU. Products of bytes are summed exactly and finished by the formula of
 * exec/device/kernels/panel.h, so INT8 results equal the CPU's bit for bit. */
#ifndef HP_CUDA_RUNTIME_DEVICE_H
#define HP_CUDA_RUNTIME_DEVICE_H

#include "exec/device/device_bind.h"
#include "exec/cuda/runtime/cuda.h"
#include "exec/data/weights/constants.h"
#include "base/arena.h"

/* The part of a step that kernels read (hp_step). */
typedef struct hp_cuda_step {
    int64_t step;
    int32_t replica, dropout;
    uint64_t seed;
    double loss_scale, clip_norm;
    hp_update_rates_f64 rates;
} hp_cuda_step;

struct hp_dnn; /* exec/cuda/dnn/dnn.h */
struct hp_lt;  /* exec/cuda/dnn/lt.h */
struct hp_cuda_ranges;

struct hp_device {
    hp_device_config config;
    hp_cuda *cuda;
    hp_arena *arena;
    struct hp_dnn *dnn;
    struct hp_lt *lt;
    struct hp_cuda_ranges *ranges; /* NULL: no profiler is attached */
    hp_bound *bound;               /* per task */
    struct hp_cuda_launch *launch; /* per task */
    hp_cuda_step *step;            /* in device memory */
    hp_cuda_step *host_step;       /* page-locked */
    bool *packed;                  /* per layer of a deployed graph: its constants are uploaded */
    float **angles;                /* per layer: angles of rotary positions in device memory, or NULL */
};

/* Enqueues on d->cuda->compute. Neither synchronises nor allocates. */
typedef hp_status hp_cuda_launch_fn(hp_device *d, const hp_bound *b, void *self, hp_error *err);

typedef struct hp_cuda_launch {
    hp_cuda_launch_fn *run;
    void *self;       /* in d->arena */
    const char *name; /* for example "cudnn engine 46", "own bn statistics" */
} hp_cuda_launch;

/* Chooses a task's launch: builds plans, uploads constants. Errors: HP_EUNAVAIL (no acceptable kernel for
 * layer X), HP_EPLAN (needs more memory than was planned). */
typedef hp_status hp_cuda_prepare_fn(hp_device *d, const hp_bound *b, hp_cuda_launch *launch, hp_error *err);

/* By task, or by the layer's operator if the task is a layer's; NULL: none. */
extern hp_cuda_prepare_fn *const hp_cuda_tasks[HP_TASK_OPS]; /* pack, loss, accum, update, copy, zero */
extern hp_cuda_prepare_fn *const hp_cuda_forward[HP_LAYER_OPS],
    *const hp_cuda_backward[HP_LAYER_OPS], *const hp_cuda_backward_weights[HP_LAYER_OPS],
                                               *const hp_cuda_stats[HP_LAYER_OPS],
                                                   *const hp_cuda_backward_stats[HP_LAYER_OPS];
/* Tables for a deployed graph. */
extern hp_cuda_prepare_fn *const hp_cuda_infer_tasks[HP_TASK_OPS], *const hp_cuda_infer[HP_LAYER_OPS];

extern const hp_device_ops hp_device_cuda, hp_device_cuda_infer;

#endif
