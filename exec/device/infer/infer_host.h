/* infer_host.h - a deployed graph on a processor: every kernel and constant is prepared at open. A device
 * provides its loops, its matrix layers, and the kernels with which it trains transformers.
 *
 * A kernel reads b->x[k], b->shape and writes b->y; the elements are b->stored.x[k] and b->stored.y, dense
 * (N, H, W, C). Everything else is in `self` and in the layer's pack buffer, which the layer's first task
 * fills. Results must not depend on how the output was cut into boxes: bit for bit where the output or the
 * inputs are quantised. */
#ifndef HP_INFER_HOST_H
#define HP_INFER_HOST_H

#include "exec/device/infer/infer_loops.h"
#include "exec/device/infer/prepare.h"

typedef struct hp_infer_kernel {
    hp_status (*run)(void *self, const hp_bound *b, hp_error *err);
    void *self;
    const char *name; /* static or in the arena: "own panels u8:vnni", "own maxpool u8 avx512" */
} hp_infer_kernel;

/* Errors: HP_EUNAVAIL (no acceptable kernel), HP_EPLAN (needs more memory than was planned), HP_EDATA. */
typedef hp_status hp_infer_prepare_fn(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err);

/* What a device provides. */
typedef struct hp_infer_host {
    const hp_infer_loops *loops, *wide; /* wide: for tasks with a float64 operand; NULL where none are */
    hp_infer_prepare_fn *matrix;        /* y = act(conv(x, w) + bias [+ y]): conv, convt, linear */
    hp_infer_prepare_fn *trained;       /* layers that run as trained (networks/deploy/deploy.h), with
                                         * constants in b->param */
} hp_infer_host;

/* `self` of every other layer's kernel. */
typedef struct hp_infer_task {
    hp_infer_op op;
    hp_infer_loop *loop;
} hp_infer_task;

hp_status hp_infer_prepare(const hp_infer_host *host, hp_infer *in, const hp_bound *b, hp_infer_kernel *k,
                           hp_error *err);

/* Slots of hp_device_ops. */
hp_status hp_infer_host_open(const hp_infer_host *host, const hp_device_config *config, hp_device **device,
                             hp_error *err);
hp_status hp_infer_host_run(hp_device *d, int task, const hp_step *step, hp_error *err);
void hp_infer_host_close(hp_device *d);

#endif
