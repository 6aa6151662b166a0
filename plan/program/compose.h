/* compose.h - programs without a network, written task by task: benchmarks of messages, replays of traffic.
 * All roles' buffers exist on every rank; those of weights, momentum and state are empty. */
#ifndef HP_COMPOSE_H
#define HP_COMPOSE_H

#include "plan/program/program.h"

/* What runs it: `n_role` roles in each of `dp` replicas, on one kind of device. Groups: 0 is the world, 1 + r
 * role r of all replicas. `n_group` more may follow, which the caller fills in (program.group). */
typedef struct hp_compose_shape {
    int32_t dp, n_role, n_group;
    hp_device_kind device;
} hp_compose_shape;
hp_program *hp_compose_program(hp_arena *arena, const hp_compose_shape *s);

/* Upper limits on everything that a role will get. */
typedef struct hp_compose_room {
    int n_task, n_operand, n_dep, n_buffer, n_queue;
} hp_compose_room;
/* Empties the role; its gradients' buffer has `grad_bytes`. */
void hp_compose_begin(hp_arena *arena, const hp_graph *g, hp_role *r, const hp_compose_room *room,
                      int64_t grad_bytes);
/* Return numbers: of a buffer of float32 elements; of a queue beside the compute queue, which is 0. */
int hp_compose_buffer(hp_role *r, int64_t elems);
int hp_compose_queue(hp_role *r, hp_queue queue);

typedef struct hp_composed {
    hp_task_op op;
    int32_t queue;
    int32_t tag; /* message: its position within the channel; collective: a bucket; else -1 */
    int32_t n_operand, operand[2];
    int32_t n_dep, dep[3];
    int64_t count; /* elements of a message or a collective; nanoseconds of HP_TASK_DUMMY */
} hp_composed;
/* Collectives use the last call of the program, if it has any. Returns the task's number. */
int hp_compose_task(const hp_program *p, hp_role *r, const hp_composed *t);
void hp_compose_end(hp_role *r);

#endif
