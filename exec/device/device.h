/* device.h - how a device runs the compute tasks of a program.
 *
 * All buffers lie in one arena that the executor allocated in the device's memory: buffer b is at arena +
 * role->buffer[b].offset, 64-byte aligned. Activations are dense (N, H, W, C) in the program's dtype; conv
 * weights (O, I/groups, kh, kw), linear weights (O, C*H*W): see graph.h. Operands per opcode:
 * plan/program/program_ops.def. Results must not depend on what the buffers held before. */
#ifndef HP_DEVICE_H
#define HP_DEVICE_H

#include "exec/base/exec_memory.h"
#include "exec/device/device_update.h"
#include "plan/program/program.h"

typedef struct hp_device hp_device; /* private to each back end */

typedef struct hp_device_config {
    const hp_program *program;
    const hp_graph *graph;
    const hp_role *role;
    int32_t replica; /* data replica of this rank */
    unsigned char *arena;
    int threads;
    struct hp_constants *constants; /* exec/data/weights/constants.h; NULL unless the graph is deployed */
    const hp_memory *memory;        /* memory of the arena; may be NULL for a device that uses host memory */
} hp_device_config;

/* The values that change from step to step. */
typedef struct hp_step {
    int64_t step;    /* from 0 */
    int32_t replica; /* data replica of this rank */
    uint64_t seed;   /* dropout */
    bool dropout;    /* false: --no-dropout */
    double lr, momentum, weight_decay;
    double beta1, beta2, eps; /* parameters of AdamW */
    double clip_norm;         /* limit of the norm of all gradients, in programs that clip them */
    int64_t updates;          /* earlier steps that updated: all except those that overflowed */
    double loss_scale;        /* 0 means 1: the program does not scale */
    double ask;               /* this rank's term of HP_METRIC_ASKED */
} hp_step;

/* Factor of the loss's gradient, by which the optimiser divides: a power of two. */
static inline double hp_step_loss_scale(const hp_step *s) {
    return s->loss_scale > 0 ? s->loss_scale : 1;
}

/* The optimiser's rates in this step. */
hp_update_rates_f64 hp_step_rates(const hp_step *s);

/* Kernels that a device chose by timing them: ranks exchange these choices, so that all use the same. */
typedef struct hp_tuning_ops {
    /* Choices that no rank has announced yet; the caller frees the text. NULL: none. */
    char *(*export_choices)(const hp_device *device);
    /* Adopts choices that a rank, possibly this one, has announced. Errors: HP_EDATA, HP_EUNAVAIL. */
    hp_status (*import_choices)(hp_device *device, const char *text, hp_error *err);
} hp_tuning_ops;

typedef struct hp_device_ops {
    const char *name; /* "cpu", "ref" */
    hp_dtype dtype;   /* the program's dtype, in which it computes */
    /* Prepares every compute task of the role: kernels are created here, never in run. Errors: HP_EUNAVAIL
     * (no acceptable kernel for layer X), HP_EPLAN (needs more scratch than was planned). */
    hp_status (*open)(const hp_device_config *config, hp_device **device, hp_error *err);
    /* Runs one task of the compute queue (any but load and store) to completion. */
    hp_status (*run)(hp_device *device, int task, const hp_step *step, hp_error *err);
    void (*close)(hp_device *device);
    const hp_memory_ops *memory;
    /* For memory with streams. begin passes a step's values to the compute stream before its first task.
     * enqueue submits a task, which reads them there and so can be captured and replayed (hp_capture_ops).
     * Both return at once. */
    hp_status (*begin)(hp_device *device, const hp_step *step, hp_error *err);
    hp_status (*enqueue)(hp_device *device, int task, const hp_order *order, hp_error *err);
    const hp_tuning_ops *tuning; /* NULL: the device times nothing */
} hp_device_ops;

/* Devices named by rows of machines/device/devices.def. */
#define BUILT_IN(trains, infers) extern const hp_device_ops trains, infers;
#define PLUGIN
#define DEVICE(id, name, dtype, trains, infers, heads, backends, own, where, memory, loaded) loaded
#include "machines/device/devices.def"
#undef BUILT_IN
#undef PLUGIN

/* The operations of a device linked into this program, for training or for deployed graphs;
 * NULL: it is a plug-in. */
const hp_device_ops *hp_device_built_in(const hp_device_info *device, bool deployed);
/* The same for any device; loads its plug-in if necessary (exec/device/device_plugin.h).
 * Errors: HP_EUNAVAIL. */
hp_status hp_device_load(const hp_device_info *device, bool deployed, const hp_device_ops **ops,
                         hp_error *err);

#endif
