/* lower.h - inside of the lowering: what lower.c, lower_emit.c, lower_layers.c and lower_memory.c share. */
#ifndef HP_LOWER_H
#define HP_LOWER_H

#include "plan/program.h"
#include "plan/schedule.h"

/* One forward pass of one micro-batch through one virtual stage: which buffer holds what. */
typedef struct hp_frame {
    int32_t *act;  /* per tensor: buffer or -1 */
    int32_t *save; /* per layer: buffer or -1 */
    int32_t *grad; /* per tensor: buffer of its gradient so far, or -1 */
} hp_frame;

/* A virtual stage: layers first .. end-1, what enters and what leaves. */
typedef struct hp_vstage {
    int32_t first, end;
    int32_t n_in, *in;   /* tensors received from the virtual stage before, forwarded ones included */
    int32_t n_out, *out; /* tensors sent to the one after */
} hp_vstage;

typedef struct hp_dep {
    int32_t task, on;
} hp_dep;

typedef struct hp_lower {
    hp_arena *arena;
    const hp_graph *g;
    const hp_strategy *s;
    const hp_lower_options *o;
    hp_program *p;
    hp_role *r; /* the role being written */
    int32_t n_vstage;
    hp_vstage *vstage;
    int32_t *last_use; /* per tensor */

    int task_room, operand_room, buffer_room, queue_room;
    int n_dep, dep_room;
    hp_dep *dep;
    int writer_room, reader_room;
    int32_t *writer; /* per buffer: last task that wrote it, -1 */
    int32_t *reader; /* per buffer: last send that reads it, -1 */

    hp_frame *frame;       /* per chunk * micro */
    int32_t metric_writer; /* last loss task */
    int n_sent, sent_room;
    int32_t *sent; /* buffers of the role's sends, in order */
    int keep;      /* steps that a sent buffer stays alive after the step that sends it */
    int step, n_step;
    int32_t *sent_after; /* per step: n_sent at its end */
    bool *touched;       /* per layer: its gradients hold a micro-batch already */
    int32_t *grad_task;  /* per layer: last task that wrote its gradients, -1 */
} hp_lower_ctx;

static inline bool lower_train(const hp_lower_ctx *c) {
    return c->o->mode == HP_MODE_TRAIN;
}

/* lower_emit.c: tasks, buffers, dependencies */
int32_t lower_buffer(hp_lower_ctx *c, hp_buffer_kind kind, hp_dtype dtype, int64_t elems, int what,
                     int micro);
int32_t lower_queue(hp_lower_ctx *c, hp_queue_kind kind, int peer, int channel);
/* Appends a task with its operands; access: one letter per operand, r or w or m (both); operands of -1 are
 * skipped for dependencies. Returns the task's id. */
int lower_task(hp_lower_ctx *c, hp_task task, const char *access, const int32_t *operand);
void lower_dep(hp_lower_ctx *c, int task, int on);
/* Keeps a buffer alive up to the task emitted last. */
void lower_touch(hp_lower_ctx *c, int32_t buffer);

/* lower_layers.c: the tasks of one pass */
void lower_forward(hp_lower_ctx *c, hp_frame *f, const hp_vstage *v, int chunk, int micro);
void lower_backward(hp_lower_ctx *c, hp_frame *f, const hp_vstage *v, int chunk, int micro);

/* lower_update.c: parameters, buckets, optimiser */
void lower_params(hp_lower_ctx *c);
void lower_packs(hp_lower_ctx *c);
void lower_update(hp_lower_ctx *c);

/* memory.c: lifetimes -> offsets; adds the dependencies that reuse needs; sets arena_bytes and live_bytes */
void hp_memory_place(hp_lower_ctx *c);

#endif
