/* emit.c - appending tasks, buffers and queues to a role; data dependencies follow from reads and
 * writes. */
#include "plan/lower/inside.h"
#include "plan/program/operands.h"
#include "plan/lower/placement.h"

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
    return r->n_buffer++;
}

int32_t lower_box(hp_lower_ctx *c, hp_buffer_kind kind, int tensor, int micro, const hp_box *box) {
    const hp_dtype dtype = hp_tensor_dtype(&c->g->tensor[tensor], c->o->dtype);
    const int32_t b = lower_buffer(c, kind, dtype, hp_box_elems(box), tensor, micro);
    c->r->buffer[b].box = *box;
    return b;
}

const hp_box *lower_box_of(const hp_lower_ctx *c, int32_t buffer) {
    return &c->r->buffer[buffer].box;
}

/* What moves on a queue, see channel_of in lower/move.c and the groups of lower/groups.c. */
static hp_traffic traffic_of(const hp_lower_ctx *c, hp_queue_kind kind, int peer, int channel) {
    if (kind == HP_QUEUE_COLL) return peer < c->first_stats ? HP_TRAFFIC_ALLREDUCE : HP_TRAFFIC_STATS;
    return channel & HP_CHANNEL_WITHIN ? HP_TRAFFIC_HALO : HP_TRAFFIC_STAGE;
}

static hp_backend backend_of(const hp_lower_ctx *c, hp_queue_kind kind, int peer, int channel) {
    if (kind == HP_QUEUE_COMPUTE) return HP_BACKEND_OWN;
    const hp_traffic traffic = traffic_of(c, kind, peer, channel);
    return hp_comm_backend(c->s->comm[traffic], traffic, c->o->device, c->s->clients);
}

static int32_t fill_of(const hp_lower_ctx *c, int group) {
    if (!c->o->machine) return 0;
    if (c->fill[group] < 0) c->fill[group] = hp_group_fill(c->p, c->o->machine, group);
    return c->fill[group];
}

/* A sum over a group that lies so on its nodes. */
static int32_t call_of(hp_lower_ctx *c, int32_t per_node) {
    hp_program *p = c->p;
    for (int i = 0; i < p->n_call; i++)
        if (p->call[i].per_node == per_node) return 1 + i;
    HP_ROOM(c->arena, p->call, p->n_call, c->call_room);
    p->call[p->n_call] = (hp_call){.reduction = HP_REDUCE_SUM, .per_node = per_node};
    return ++p->n_call;
}

/* The algorithm that the strategy names, if it can do this one; else by the rule of plan/collectives. */
static void choose_algorithm(hp_lower_ctx *c, hp_task *t) {
    const hp_queue *q = &c->r->queue[t->queue];
    if (!hp_task_is_collective(t) || !hp_backend_steps(q->backend)) return;
    hp_collective_case what = hp_task_case(c->p, c->r, t);
    const int32_t fill = fill_of(c, q->peer);
    if (fill) what.per_node = fill;
    const hp_algorithm named =
        hp_comm_algorithm(c->s->comm[traffic_of(c, HP_QUEUE_COLL, q->peer, q->channel)]);
    const bool can = named != HP_ALGORITHM_LIBRARY && hp_algorithm_does(named, &what, true);
    t->algorithm =
        (uint8_t)(can ? named
                      : hp_algorithm_choose(&what, t->count * hp_dtype_bytes((hp_dtype)t->dtype), true));
    if (t->algorithm == HP_ALGORITHM_TWO_LEVELS) t->call = call_of(c, fill);
}

int32_t lower_queue(hp_lower_ctx *c, hp_queue_kind kind, int peer, int channel) {
    hp_role *r = c->r;
    for (int i = 0; i < r->n_queue; i++)
        if (r->queue[i].kind == (int32_t)kind && r->queue[i].peer == peer && r->queue[i].channel == channel)
            return i;
    HP_ROOM(c->arena, r->queue, r->n_queue, c->queue_room);
    r->queue[r->n_queue] =
        (hp_queue){(int32_t)kind, peer, channel, (int32_t)backend_of(c, kind, peer, channel)};
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
    if (access == 'w' || access == 'm') {
        lower_dep(c, task, c->reader[buffer]);
        c->writer[buffer] = task;
        c->reader[buffer] = -1;
    } else if (sending) {
        c->reader[buffer] = task;
    }
}

static void add_operand(hp_lower_ctx *c, int task, int32_t buffer, char access) {
    hp_role *r = c->r;
    HP_ROOM(c->arena, r->operand, r->n_operand, c->operand_room);
    r->operand[r->n_operand++] = buffer;
    r->task[task].n_operand++;
    use_operand(c, task, buffer, access);
}

int lower_task(hp_lower_ctx *c, hp_task task, const int32_t *operand) {
    hp_role *r = c->r;
    task.operand = r->n_operand;
    task.n_operand = 0;
    choose_algorithm(c, &task);
    HP_ROOM(c->arena, r->task, r->n_task, c->task_room);
    r->task[r->n_task] = task;
    const int id = r->n_task++;
    for (const hp_operand_info *o = hp_task_operands[task.op]; o->kind != HP_OPERAND_NONE; o++) {
        if (o->count == HP_OPERAND_EXTRA && *operand < 0) break;
        const int n = o->count == HP_OPERAND_EACH ? c->g->layer[task.layer].n_in : 1;
        for (int k = 0; k < n; k++) add_operand(c, id, *operand++, o->access);
    }
    return id;
}

hp_task lower_layer_task(const hp_pass *a, hp_task_op op, int layer, int flags) {
    return (hp_task){.op = (uint8_t)op,
                     .layer = layer,
                     .chunk = (int16_t)a->slot,
                     .micro = a->micro,
                     .tag = -1,
                     .flags = (uint8_t)flags};
}

int lower_zero(hp_lower_ctx *c, const hp_pass *a, int layer, int32_t buffer, int64_t offset, int64_t count) {
    hp_task t = lower_layer_task(a, HP_TASK_ZERO, layer, 0);
    t.offset = offset;
    t.count = count;
    return lower_task(c, t, &buffer);
}
