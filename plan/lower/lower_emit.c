/* lower_emit.c - appending tasks, buffers and queues to a role; data dependencies follow from reads and
 * writes. */
#include "plan/lower/lower_inside.h"
#include "plan/program/operands.h"

int32_t lower_buffer(hp_role_builder *c, hp_buffer_kind kind, hp_dtype dtype, int64_t elems, int what,
                     int micro) {
    hp_role *r = c->r;
    HP_ROOM(c->facts->arena, r->buffer, r->n_buffer, c->emit.buffer_room);
    HP_ROOM(c->facts->arena, c->emit.writer, r->n_buffer, c->emit.writer_room);
    HP_ROOM(c->facts->arena, c->emit.reader, r->n_buffer, c->emit.reader_room);
    c->emit.writer[r->n_buffer] = c->emit.reader[r->n_buffer] = -1;
    r->buffer[r->n_buffer] = (hp_buffer){.kind = (uint8_t)kind,
                                         .dtype = (uint8_t)dtype,
                                         .what = what,
                                         .micro = micro,
                                         .first = -1,
                                         .last = -1,
                                         .bytes = elems * hp_dtype_bytes(dtype),
                                         .offset = -1};
    return r->n_buffer++;
}

int32_t lower_box(hp_role_builder *c, hp_buffer_kind kind, int tensor, int micro, const hp_box *box) {
    const hp_dtype dtype = hp_tensor_dtype(&c->facts->g->tensor[tensor], c->facts->o->dtype);
    const int32_t b = lower_buffer(c, kind, dtype, hp_box_elems(box), tensor, micro);
    c->r->buffer[b].box = *box;
    return b;
}

const hp_box *lower_box_of(const hp_role_builder *c, int32_t buffer) {
    return &c->r->buffer[buffer].box;
}

int32_t lower_queue(hp_role_builder *c, hp_queue_kind kind, int peer, int channel, hp_backend by) {
    hp_role *r = c->r;
    for (int i = 0; i < r->n_queue; i++)
        if (r->queue[i].kind == (int32_t)kind && r->queue[i].peer == peer && r->queue[i].channel == channel)
            return i;
    HP_ROOM(c->facts->arena, r->queue, r->n_queue, c->emit.queue_room);
    r->queue[r->n_queue] = (hp_queue){(int32_t)kind, peer, channel, (int32_t)by};
    return r->n_queue++;
}

void lower_dep(hp_role_builder *c, int task, int on) {
    if (on < 0 || on == task) return; /* in place: reads and writes the same buffer */
    HP_ASSERT(on < task);
    for (int i = c->emit.n_dep - 1; i >= 0 && c->emit.dep[i].task == task; i--)
        if (c->emit.dep[i].on == on) return;
    HP_ROOM(c->facts->arena, c->emit.dep, c->emit.n_dep, c->emit.dep_room);
    c->emit.dep[c->emit.n_dep++] = (hp_dep){task, on};
}

int32_t lower_list_add(hp_arena *arena, hp_lists *l, int32_t task, int32_t list) {
    HP_ROOM(arena, l->at, l->n, l->room);
    l->at[l->n].task = task;
    l->at[l->n].next = list;
    return l->n++;
}

void lower_touch(hp_role_builder *c, int32_t buffer) {
    hp_buffer *b = &c->r->buffer[buffer];
    const int now = c->r->n_task - 1;
    if (b->first < 0) b->first = now;
    if (b->last < now) b->last = now;
}

static void use_operand(hp_role_builder *c, int task, int32_t buffer, char access) {
    if (buffer < 0) return;
    const bool sending = hp_task_infos[c->r->task[task].op].queue == HP_QUEUE_SEND;
    lower_touch(c, buffer);
    lower_dep(c, task, c->emit.writer[buffer]);
    if (access == 'w' || access == 'm') {
        for (int32_t i = c->emit.reader[buffer]; i >= 0; i = c->emit.readers.at[i].next)
            lower_dep(c, task, c->emit.readers.at[i].task);
        c->emit.writer[buffer] = task;
        c->emit.reader[buffer] = -1;
    } else if (sending) {
        c->emit.reader[buffer] =
            lower_list_add(c->facts->arena, &c->emit.readers, task, c->emit.reader[buffer]);
    }
}

static void add_operand(hp_role_builder *c, int task, int32_t buffer, char access) {
    hp_role *r = c->r;
    HP_ROOM(c->facts->arena, r->operand, r->n_operand, c->emit.operand_room);
    r->operand[r->n_operand++] = buffer;
    r->task[task].n_operand++;
    use_operand(c, task, buffer, access);
}

/* Is one of the EXTRA operands from this on present? */
static bool any_left(const hp_operand_info *o, const int32_t *operand) {
    for (; o->kind != HP_OPERAND_NONE; o++)
        if (*operand++ >= 0) return true;
    return false;
}

int lower_task(hp_role_builder *c, hp_task task, const int32_t *operand) {
    hp_role *r = c->r;
    task.operand = r->n_operand;
    task.n_operand = 0;
    HP_ROOM(c->facts->arena, r->task, r->n_task, c->emit.task_room);
    r->task[r->n_task] = task;
    const int id = r->n_task++;
    for (const hp_operand_info *o = hp_task_operands[task.op]; o->kind != HP_OPERAND_NONE; o++) {
        if (o->count == HP_OPERAND_EXTRA && !any_left(o, operand)) break;
        const int n = o->count == HP_OPERAND_EACH ? c->facts->g->layer[task.layer].n_in : 1;
        for (int k = 0; k < n; k++) add_operand(c, id, *operand++, o->access);
    }
    return id;
}

hp_task lower_layer_task(const hp_pass *a, hp_task_op op, int layer, int flags) {
    return (hp_task){.op = (uint8_t)op,
                     .layer = layer,
                     .chunk = (int16_t)a->slot,
                     .micro = a->micro,
                     .flags = (uint8_t)flags};
}

int lower_zero(hp_role_builder *c, const hp_pass *a, int layer, int32_t buffer, int64_t first,
               int64_t elems) {
    hp_task t = lower_layer_task(a, HP_TASK_ZERO, layer, 0);
    t.zero.first = first;
    t.zero.elems = elems;
    return lower_task(c, t, &buffer);
}
