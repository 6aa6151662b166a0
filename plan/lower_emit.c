/* lower_emit.c - appending tasks, buffers and queues to a role; data dependencies follow from reads and
 * writes. */
#include "plan/lower.h"

#include <string.h>

int32_t lower_buffer(hp_lower_ctx *c, hp_buffer_kind kind, hp_dtype dtype, int64_t elems, int what,
                     int micro) {
    hp_role *r = c->r;
    HP_ROOM(c->arena, r->buffer, r->n_buffer, c->buffer_room);
    HP_ROOM(c->arena, c->writer, r->n_buffer, c->writer_room);
    HP_ROOM(c->arena, c->reader, r->n_buffer, c->reader_room);
    c->writer[r->n_buffer] = c->reader[r->n_buffer] = -1;
    r->buffer[r->n_buffer] = (hp_buffer){.kind = (uint8_t)kind,
                                         .dtype = (uint8_t)dtype,
                                         .what = what,
                                         .micro = micro,
                                         .first = -1,
                                         .last = -1,
                                         .bytes = elems * hp_dtype_bytes(dtype),
                                         .offset = -1};
    if (kind == HP_BUF_TENSOR || kind == HP_BUF_GRADIENT)
        r->buffer[r->n_buffer].box = hp_box_whole(c->g, what, c->p->micro_batch);
    if (kind == HP_BUF_LABELS) r->buffer[r->n_buffer].box.hi[0] = (int32_t)c->p->micro_batch;
    return r->n_buffer++;
}

int32_t lower_queue(hp_lower_ctx *c, hp_queue_kind kind, int peer, int channel) {
    hp_role *r = c->r;
    for (int i = 0; i < r->n_queue; i++)
        if (r->queue[i].kind == (int32_t)kind && r->queue[i].peer == peer && r->queue[i].channel == channel)
            return i;
    HP_ROOM(c->arena, r->queue, r->n_queue, c->queue_room);
    r->queue[r->n_queue] = (hp_queue){(int32_t)kind, peer, channel};
    return r->n_queue++;
}

void lower_dep(hp_lower_ctx *c, int task, int on) {
    if (on < 0 || on == task) return; /* in place: reads and writes the same buffer */
    HP_ASSERT(on < task);
    for (int i = c->n_dep - 1; i >= 0 && c->dep[i].task == task; i--)
        if (c->dep[i].on == on) return;
    HP_ROOM(c->arena, c->dep, c->n_dep, c->dep_room);
    c->dep[c->n_dep++] = (hp_dep){task, on};
}

void lower_touch(hp_lower_ctx *c, int32_t buffer) {
    hp_buffer *b = &c->r->buffer[buffer];
    const int now = c->r->n_task - 1;
    if (b->first < 0) b->first = now;
    if (b->last < now) b->last = now;
}

static void use_operand(hp_lower_ctx *c, int task, int32_t buffer, char access) {
    if (buffer < 0) return;
    const bool sending = hp_task_infos[c->r->task[task].op].queue == HP_QUEUE_SEND;
    lower_touch(c, buffer);
    lower_dep(c, task, c->writer[buffer]);
    if (access != 'r') {
        lower_dep(c, task, c->reader[buffer]);
        c->writer[buffer] = task;
        c->reader[buffer] = -1;
    } else if (sending) {
        c->reader[buffer] = task;
    }
}

int lower_task(hp_lower_ctx *c, hp_task task, const char *access, const int32_t *operand) {
    hp_role *r = c->r;
    const int n = (int)strlen(access);
    task.operand = r->n_operand;
    task.n_operand = n;
    HP_ROOM(c->arena, r->task, r->n_task, c->task_room);
    r->task[r->n_task] = task;
    const int id = r->n_task++;
    for (int i = 0; i < n; i++) {
        HP_ROOM(c->arena, r->operand, r->n_operand, c->operand_room);
        r->operand[r->n_operand++] = operand[i];
        use_operand(c, id, operand[i], access[i]);
    }
    return id;
}
