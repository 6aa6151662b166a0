/* compose.c - roles built up from nothing. */
#include "plan/program/compose.h"

enum { ALIGN = 64 };

hp_program *hp_compose_program(hp_arena *arena, const hp_compose_shape *s) {
    hp_program *p = HP_NEW(arena, hp_program, 1);
    *p = (hp_program){.mode = HP_MODE_INFER,
                      .dtype = HP_F32,
                      .dp = s->dp,
                      .micro = 1,
                      .batch = s->dp,
                      .micro_batch = 1,
                      .n_role = s->n_role,
                      .clients = 1,
                      .device = (int32_t)s->device,
                      .n_group = 1 + s->n_role + s->n_group,
                      .n_member = s->n_role,
                      .member = HP_NEW(arena, int32_t, s->n_role),
                      .role = HP_NEW(arena, hp_role, s->n_role),
                      .group = HP_NEW(arena, hp_group, 1 + s->n_role + s->n_group)};
    p->group[0] = (hp_group){.first = 0, .n = s->n_role, .all_replicas = 1};
    for (int r = 0; r < s->n_role; r++) {
        p->group[1 + r] = (hp_group){.first = r, .n = 1, .all_replicas = 1};
        p->member[r] = r;
        p->role[r].stage = r;
        p->role[r].n_slot = 1;
        p->role[r].slot = HP_NEW(arena, hp_slot, 1);
        p->role[r].slot[0].stage = r;
    }
    return p;
}

static int add_buffer(hp_role *r, hp_buffer_kind kind, hp_dtype dtype, int64_t bytes) {
    r->buffer[r->n_buffer] = (hp_buffer){.kind = (uint8_t)kind,
                                         .dtype = (uint8_t)dtype,
                                         .what = -1,
                                         .micro = -1,
                                         .bytes = bytes,
                                         .offset = bytes > 0 ? r->arena_bytes : 0};
    r->arena_bytes += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return r->n_buffer++;
}

int hp_compose_buffer(hp_role *r, int64_t elems) {
    return add_buffer(r, HP_BUF_TENSOR, HP_F32, 4 * elems);
}

int hp_compose_queue(hp_role *r, hp_queue queue) {
    r->queue[r->n_queue] = queue;
    return r->n_queue++;
}

void hp_compose_begin(hp_arena *arena, const hp_graph *g, hp_role *r, const hp_compose_room *room,
                      int64_t grad_bytes) {
    *r = (hp_role){.stage = r->stage,
                   .n_slot = r->n_slot,
                   .slot = r->slot,
                   .task = HP_NEW(arena, hp_task, room->n_task),
                   .operand = HP_NEW(arena, int32_t, room->n_operand),
                   .dep_first = HP_NEW(arena, int32_t, room->n_task + 1),
                   .dep = HP_NEW(arena, int32_t, room->n_dep),
                   .buffer = HP_NEW(arena, hp_buffer, HP_BUF_FIXED + room->n_buffer),
                   .queue = HP_NEW(arena, hp_queue, 1 + room->n_queue),
                   .place = HP_NEW(arena, hp_param_place, g->n_param),
                   .pack_forward = HP_NEW(arena, int32_t, g->n_layer),
                   .pack_backward = HP_NEW(arena, int32_t, g->n_layer)};
    for (int l = 0; l < g->n_layer; l++) r->pack_forward[l] = r->pack_backward[l] = -1;
    add_buffer(r, HP_BUF_WEIGHTS, HP_F32, 0);
    add_buffer(r, HP_BUF_GRADS, HP_F32, grad_bytes);
    add_buffer(r, HP_BUF_OPTIMIZER, HP_F32, 0);
    add_buffer(r, HP_BUF_STATE, HP_F32, 0);
    add_buffer(r, HP_BUF_METRIC, HP_F64, HP_METRICS * 8);
    add_buffer(r, HP_BUF_SCRATCH, HP_U8, 0);
    hp_compose_queue(r, (hp_queue){.kind = HP_QUEUE_COMPUTE, .peer = -1, .channel = -1});
}

int hp_compose_task(const hp_program *p, hp_role *r, const hp_composed *t) {
    hp_task *out = &r->task[r->n_task];
    *out = (hp_task){.op = (uint8_t)t->op,
                     .dtype = HP_F32,
                     .queue = (int16_t)t->queue,
                     .layer = -1,
                     .micro = -1,
                     .operand = r->n_operand,
                     .n_operand = t->n_operand};
    switch (hp_task_family_of(out)) {
    case HP_FAMILY_MESSAGE:
        out->message.position = t->tag;
        out->message.elems = t->count;
        break;
    case HP_FAMILY_COLLECTIVE:
        out->collective.bucket = t->tag;
        out->collective.call = p->n_call;
        out->collective.elems = t->count;
        break;
    case HP_FAMILY_DUMMY:
        out->dummy.ns = t->count;
        break;
    default:
        HP_ASSERT(false);
    }
    for (int i = 0; i < t->n_operand; i++) r->operand[r->n_operand++] = t->operand[i];
    for (int i = 0; i < t->n_dep; i++) r->dep[r->n_dep++] = t->dep[i];
    out->algorithm = (uint8_t)hp_task_algorithm(p, r, out);
    r->dep_first[++r->n_task] = r->n_dep;
    return r->n_task - 1;
}

void hp_compose_end(hp_role *r) {
    r->arena_bytes = 0; /* without what the next buffer would have been aligned by */
    for (int b = 0; b < r->n_buffer; b++)
        if (r->buffer[b].bytes > 0) r->arena_bytes = r->buffer[b].offset + r->buffer[b].bytes;
    for (int b = 0; b < r->n_buffer; b++) r->buffer[b].last = b < HP_BUF_FIXED ? r->n_task : r->n_task - 1;
    r->live_bytes = r->arena_bytes;
}
