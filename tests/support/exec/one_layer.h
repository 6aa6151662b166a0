/* one_layer.h - a program of one layer, its tasks and buffers laid out by hand, to run on any device: the
 * whole layer, or the part of it between boxes.
 *
 * Tensors 0..n_in-1 are inputs, tensor n_in the output. Values are drawn in float32, so that float64 and
 * float32 rigs hold the same numbers. */
#ifndef HP_TESTS_ONE_LAYER_H
#define HP_TESTS_ONE_LAYER_H

#include "exec/base/half.h"
#include "exec/device/device.h"
#include "base/arena.h"
#include "base/rng.h"
#include "plan/memory/memory_device.h"
#include "plan/memory/gpu_scratch.h"

#include <stdlib.h>
#include <string.h>

enum { RIG_BUFFERS = 64, RIG_TASKS = 20, RIG_OPERANDS = 256 };

enum {
    RIG_PACK,
    RIG_FWD,
    RIG_BWD,
    RIG_BWDW,
    RIG_EVAL,
    RIG_SGD, /* the optimiser: gradient descent unless graph.optimizer says otherwise */
    RIG_NORM,
    RIG_ACCUM,
    RIG_LOSS,
    RIG_LOSS_EVAL,
    RIG_STATS, /* bn with statistics of several ranks: the sums are in a buffer between the tasks */
    RIG_FWD_SHARED,
    RIG_BSTATS,
    RIG_BWD_SHARED,
    RIG_USED,
    RIG_MORE_FWD = RIG_USED, /* a second part next to the first: rig_add_part */
    RIG_MORE_BWD
};

/* Constants of the step that rig_run runs. */
#define RIG_LR    0.1
#define RIG_DECAY 1e-4
#define RIG_BETA1 0.9
#define RIG_BETA2 0.95
#define RIG_EPS   1e-3
enum { RIG_UPDATES = 4 };

/* The part of its tensors that a rig holds. own: pixels of the output that count in its statistics. */
typedef struct rig_boxes {
    hp_box in[HP_MAX_IN], out, own;
} rig_boxes;

typedef struct rig {
    hp_arena *arena;
    hp_graph graph;
    hp_layer layer[2];
    hp_tensor tensor[HP_MAX_IN + 1];
    hp_param param[HP_MAX_LAYER_PARAMS];
    hp_param_place place[HP_MAX_LAYER_PARAMS];
    hp_program program;
    hp_role role;
    hp_bucket bucket; /* all parameters */
    hp_task task[RIG_TASKS];
    int32_t operand[RIG_OPERANDS], pack_forward[2], pack_backward[2];
    hp_buffer buffer[RIG_BUFFERS];
    unsigned char *memory; /* the buffers as the host sees them; */
    unsigned char *there;  /* the buffers' place if the host cannot access it: copied for every task */
    const hp_device_ops *ops;
    hp_memory gpu; /* memory of `there`, or the host's */
    hp_device *device;
    int64_t samples; /* samples of the whole */
    rig_boxes boxes;
    int32_t x[HP_MAX_IN], dx[HP_MAX_IN], y, dy, save, sums, logits_grad, labels; /* buffers */
} rig;

int64_t rig_elems(const rig *r, int32_t buffer);
void *rig_at(const rig *r, int32_t buffer);

/* Element i of a buffer of any type. */
double rig_get(const rig *r, int32_t buffer, int64_t i);
void rig_set(rig *r, int32_t buffer, int64_t i, double v);

/* Uniform in [low, high], float32 values; `stream` distinguishes buffers. */
void rig_fill(rig *r, int32_t buffer, uint64_t stream, double low, double high);

/* Lays out `layer` (op and geometry set) on inputs in[0..n_in) and output `out` for `samples` samples,
 * between `boxes`; NULL: the whole. */
rig *rig_new_part(const hp_device_ops *ops, const hp_layer *layer, const hp_tensor *in, hp_tensor out,
                  int64_t samples, bool bias, int flags, const rig_boxes *boxes);
rig *rig_new(const hp_device_ops *ops, const hp_layer *layer, const hp_tensor *in, hp_tensor out,
             int64_t samples, bool bias, int flags);

/* Adds a second part of the layer, which must have one input, as a role with mirrored tiles has: tasks of
 * another geometry on the same parameters and packs. Call before filling the rig; buffers of the second part
 * are x[1], dx[1], y2, dy2. */
void rig_add_part(rig *r, const rig_boxes *boxes, int32_t *y2, int32_t *dy2);
hp_status rig_open(rig *r, hp_error *err);
hp_status rig_run(rig *r, int task);
void rig_free(rig *r);

#endif
