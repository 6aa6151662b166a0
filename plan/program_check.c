/* program_check.c - what is proved of a program before it runs or after it was read from a file.
 *
 * Structure first (everything in range), then per role (dependencies, memory), then between roles (messages,
 * collectives), last the wait-for graph of check_waits.c. */
#include "plan/program_check.h"

#include <string.h>

enum { MAX_ROLES = HP_MAX_ROLES, MAX_TASKS = 1 << 26 };

#define REFUSE(...) return hp_fail(err, HP_EPLAN, __VA_ARGS__)

static hp_status check_buffers(const hp_role *r, int role, hp_error *err) {
    if (r->n_buffer < HP_BUF_FIXED)
        REFUSE("E-RANGE: stage %d has %d buffers, needs at least %d", role, r->n_buffer, HP_BUF_FIXED);
    for (int i = 0; i < r->n_buffer; i++) {
        const hp_buffer *b = &r->buffer[i];
        if (b->dtype > HP_U8 || b->bytes < 0 || b->offset < 0 || b->offset % 64 ||
            b->bytes > r->arena_bytes || b->offset > r->arena_bytes - b->bytes)
            REFUSE("E-RANGE: stage %d buffer %d lies outside the arena of %lld bytes", role, i,
                   (long long)r->arena_bytes);
    }
    return HP_OK;
}

static hp_status check_task(const hp_program *p, const hp_graph *g, int role, int id, hp_error *err) {
    const hp_role *r = &p->role[role];
    const hp_task *t = &r->task[id];
    if (t->op >= HP_TASK_OPS || t->queue < 0 || t->queue >= r->n_queue || t->layer < -1 ||
        t->layer >= g->n_layer || t->micro < -1 || t->micro >= p->micro || t->operand < 0 ||
        t->n_operand < 0 || t->n_operand > r->n_operand - t->operand || t->count < 0 || t->offset < 0 ||
        t->dtype > HP_U8)
        REFUSE("E-RANGE: stage %d task %d has a field out of range", role, id);
    if (r->queue[t->queue].kind != (int)hp_task_infos[t->op].queue)
        REFUSE("E-TYPE: stage %d task %d: a %s cannot run on queue %d", role, id, hp_task_infos[t->op].name,
               t->queue);
    if (r->dep_first[id] < 0 || r->dep_first[id] > r->dep_first[id + 1] || r->dep_first[id + 1] > r->n_dep)
        REFUSE("E-RANGE: stage %d task %d has dependencies out of range", role, id);
    for (int i = r->dep_first[id]; i < r->dep_first[id + 1]; i++)
        if (r->dep[i] < 0 || r->dep[i] >= r->n_task)
            REFUSE("E-RANGE: stage %d task %d waits for task %d", role, id, r->dep[i]);
    for (int i = 0; i < t->n_operand; i++)
        if (r->operand[t->operand + i] < -1 || r->operand[t->operand + i] >= r->n_buffer)
            REFUSE("E-RANGE: stage %d task %d operand %d is no buffer", role, id, i);
    return HP_OK;
}

/* Operand counts and sizes that the interpreters and devices rely on. */
static hp_status check_shape(const hp_program *p, const hp_graph *g, int role, int id, hp_error *err) {
    const hp_role *r = &p->role[role];
    const hp_task *t = &r->task[id];
    const bool layered =
        t->op == HP_TASK_FWD || t->op == HP_TASK_BWD || t->op == HP_TASK_BWDW || t->op == HP_TASK_PACK;
    if (layered && t->layer < 1)
        REFUSE("E-RANGE: stage %d task %d: a %s needs a layer", role, id, hp_task_infos[t->op].name);
    const int n_in = layered ? g->layer[t->layer].n_in : 0;
    const int want[HP_TASK_OPS] = {
        [HP_TASK_LOAD] = 2,           [HP_TASK_PACK] = 2,     [HP_TASK_FWD] = 2 + n_in, [HP_TASK_LOSS] = 3,
        [HP_TASK_BWD] = 3 + 2 * n_in, [HP_TASK_BWDW] = 2,     [HP_TASK_ACCUM] = 2,      [HP_TASK_SEND] = 1,
        [HP_TASK_RECV] = 1,           [HP_TASK_ALLREDUCE] = 1};
    if (t->n_operand != want[t->op])
        REFUSE("E-COUNT: stage %d task %d: a %s has %d operands, not %d", role, id, hp_task_infos[t->op].name,
               want[t->op], t->n_operand);
    int64_t room = t->op == HP_TASK_SGD ? r->buffer[HP_BUF_WEIGHTS].bytes / hp_dtype_bytes((hp_dtype)p->dtype)
                                        : INT64_MAX;
    if (hp_task_infos[t->op].queue != HP_QUEUE_COMPUTE) {
        const int32_t b = r->operand[t->operand];
        if (b < 0) REFUSE("E-COUNT: stage %d task %d moves no buffer", role, id);
        if (r->buffer[b].dtype != t->dtype)
            REFUSE("E-TYPE: stage %d task %d moves %s from a buffer of %s", role, id,
                   hp_dtype_names[t->dtype], hp_dtype_names[r->buffer[b].dtype]);
        room = r->buffer[b].bytes / hp_dtype_bytes((hp_dtype)t->dtype);
    }
    if (t->offset > room || t->count > room - t->offset)
        REFUSE("E-COUNT: stage %d task %d: elements %lld+%lld of %lld", role, id, (long long)t->offset,
               (long long)t->count, (long long)room);
    return HP_OK;
}

static hp_status check_places(const hp_program *p, const hp_graph *g, int role, hp_error *err) {
    const hp_role *r = &p->role[role];
    const int64_t element = hp_dtype_bytes((hp_dtype)p->dtype);
    for (int i = 0; i < g->n_param; i++) {
        if (!r->place[i].here) continue;
        const int buffer = hp_param_trained(&g->param[i]) ? HP_BUF_WEIGHTS : HP_BUF_STATE;
        const int64_t room = r->buffer[buffer].bytes / element;
        if (r->place[i].offset < 0 || r->place[i].offset > room ||
            g->param[i].count > room - r->place[i].offset)
            REFUSE("E-RANGE: stage %d: parameter %s lies outside its buffer", role, g->param[i].name);
    }
    for (int l = 0; l < g->n_layer; l++)
        if (r->pack_forward[l] < -1 || r->pack_forward[l] >= r->n_buffer || r->pack_backward[l] < -1 ||
            r->pack_backward[l] >= r->n_buffer)
            REFUSE("E-RANGE: stage %d: layer %s has a pack out of range", role, g->layer[l].name);
    return HP_OK;
}

static hp_status check_structure(const hp_program *p, const hp_graph *g, hp_error *err) {
    if (p->n_role < 1 || p->n_role > MAX_ROLES || p->dp < 1 || p->micro < 1 || p->micro_batch < 1 ||
        p->n_group < 1 || p->dtype > HP_F64 || p->dtype < 0)
        REFUSE("E-RANGE: the program's degrees are out of range");
    for (int s = 0; s < p->n_role; s++) {
        const hp_role *r = &p->role[s];
        if (r->n_task < 1 || r->n_task > MAX_TASKS || r->n_queue < 1 || r->dep_first[0] != 0 ||
            r->dep_first[r->n_task] != r->n_dep)
            REFUSE("E-RANGE: stage %d has no tasks, or its dependency list is broken", s);
        for (int q = 0; q < r->n_queue; q++) {
            const hp_queue *queue = &r->queue[q];
            const int limit = queue->kind == HP_QUEUE_COLL ? p->n_group : p->n_role;
            if (queue->kind < 0 || queue->kind > (int32_t)HP_QUEUE_COLL ||
                (q == 0) != (queue->kind == HP_QUEUE_COMPUTE) ||
                (q > 0 && (queue->peer < 0 || queue->peer >= limit)))
                REFUSE("E-RANGE: stage %d queue %d is broken", s, q);
        }
        HP_TRY(check_buffers(r, s, err));
        for (int t = 0; t < r->n_task; t++) HP_TRY(check_task(p, g, s, t, err));
        for (int t = 0; t < r->n_task; t++) HP_TRY(check_shape(p, g, s, t, err));
        HP_TRY(check_places(p, g, s, err));
    }
    return HP_OK;
}

/* --- messages --- */

/* Next task of queue q from `from` on, or -1. */
static int next_of_queue(const hp_role *r, int q, int from) {
    for (int t = from; t < r->n_task; t++)
        if (r->task[t].queue == q) return t;
    return -1;
}

static int find_queue(const hp_role *r, int kind, int peer, int channel) {
    for (int q = 0; q < r->n_queue; q++)
        if (r->queue[q].kind == kind && r->queue[q].peer == peer && r->queue[q].channel == channel) return q;
    return -1;
}

static hp_status check_pair(const hp_program *p, int from, int q, hp_error *err) {
    const hp_role *a = &p->role[from];
    const int to = a->queue[q].peer, channel = a->queue[q].channel;
    const hp_role *b = &p->role[to];
    const int back =
        find_queue(b, a->queue[q].kind == HP_QUEUE_SEND ? HP_QUEUE_RECV : HP_QUEUE_SEND, from, channel);
    const char *verb = a->queue[q].kind == HP_QUEUE_SEND ? "sends" : "receives";
    if (back < 0 && next_of_queue(a, q, 0) < 0) return HP_OK;
    if (back < 0)
        REFUSE("E-MATCH: rank %d %s on channel %d, rank %d has no counterpart", from, verb, channel, to);
    int s = next_of_queue(a, q, 0), r = next_of_queue(b, back, 0);
    for (int k = 0; s >= 0 && r >= 0; k++) {
        const hp_task *x = &a->task[s], *y = &b->task[r];
        if (x->dtype != y->dtype)
            REFUSE("E-TYPE: message %d on channel %d: rank %d %s %s, rank %d has %s", k, channel, from, verb,
                   hp_dtype_names[x->dtype], to, hp_dtype_names[y->dtype]);
        if (x->tag != y->tag)
            REFUSE("E-ORDER: message %d on channel %d: rank %d %s tag %d, rank %d has tag %d", k, channel,
                   from, verb, x->tag, to, y->tag);
        if (x->count != y->count)
            REFUSE("E-COUNT: message %d on channel %d: rank %d %s %lld elements, rank %d has %lld", k,
                   channel, from, verb, (long long)x->count, to, (long long)y->count);
        s = next_of_queue(a, q, s + 1);
        r = next_of_queue(b, back, r + 1);
    }
    if (s >= 0)
        REFUSE("E-MATCH: rank %d %s a message on channel %d (task %d) that rank %d never answers", from, verb,
               channel, s, to);
    if (r >= 0) REFUSE("E-MATCH: rank %d waits on channel %d (task %d) for rank %d", to, channel, r, from);
    return HP_OK;
}

static hp_status check_messages(const hp_program *p, hp_error *err) {
    for (int s = 0; s < p->n_role; s++)
        for (int q = 1; q < p->role[s].n_queue; q++)
            if (p->role[s].queue[q].kind != HP_QUEUE_COLL) HP_TRY(check_pair(p, s, q, err));
    return HP_OK;
}

/* --- collectives --- */

/* Replicas share their role's list, so a replica group agrees by construction if the group is the role's own;
 * the world group must see the same sequence on every role. */
static hp_status check_collectives(const hp_program *p, hp_error *err) {
    for (int s = 0; s < p->n_role; s++)
        for (int q = 1; q < p->role[s].n_queue; q++) {
            const hp_queue *queue = &p->role[s].queue[q];
            if (queue->kind == HP_QUEUE_COLL && !hp_group_has_role(p, queue->peer, s))
                REFUSE("E-MATCH: rank %d calls a collective of group %d, of which it is no member", s,
                       queue->peer);
        }
    const hp_role *a = &p->role[0];
    const int qa = find_queue(a, HP_QUEUE_COLL, 0, 0);
    for (int s = 1; s < p->n_role; s++) {
        const hp_role *b = &p->role[s];
        const int qb = find_queue(b, HP_QUEUE_COLL, 0, 0);
        int x = qa < 0 ? -1 : next_of_queue(a, qa, 0), y = qb < 0 ? -1 : next_of_queue(b, qb, 0);
        for (int k = 0; x >= 0 && y >= 0; k++) {
            if (a->task[x].dtype != b->task[y].dtype)
                REFUSE("E-TYPE: collective %d over all ranks: rank 0 has %s, rank %d %s", k,
                       hp_dtype_names[a->task[x].dtype], s, hp_dtype_names[b->task[y].dtype]);
            if (a->task[x].count != b->task[y].count || a->task[x].flags != b->task[y].flags)
                REFUSE("E-ORDER: collective %d over all ranks: rank 0 and rank %d call different ones", k, s);
            x = next_of_queue(a, qa, x + 1);
            y = next_of_queue(b, qb, y + 1);
        }
        if (x >= 0 || y >= 0)
            REFUSE("E-MATCH: rank %d calls a collective over all ranks that rank %d does not", x >= 0 ? 0 : s,
                   x >= 0 ? s : 0);
    }
    return HP_OK;
}

hp_status hp_program_check(const hp_program *p, const hp_graph *g, hp_error *err) {
    HP_TRY(check_structure(p, g, err));
    HP_TRY(check_messages(p, err));
    HP_TRY(check_collectives(p, err));
    HP_TRY(hp_check_waits(p, g, err));
    return hp_check_memory(p, err);
}
