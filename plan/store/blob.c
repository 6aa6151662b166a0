/* blob.c - a task program as arrays of fixed-width structures: one blob per (role, part). */
#include "plan/store/blob.h"

#include "base/alloc.h"
#include "plan/store/stored_task.h"

#include <string.h>

_Static_assert(sizeof(hp_call) == 20 && sizeof(hp_buffer) == 72 && sizeof(hp_queue) == 16 &&
                   sizeof(hp_param_place) == 32 && sizeof(hp_group) == 16 && sizeof(hp_slot) == 16 &&
                   sizeof(hp_bucket) == 32,
               "stored structures have no hidden padding");
_Static_assert(HP_METRICS == 9, "what stored programs sum");

typedef struct role_head {
    int32_t stage, n_task, n_operand, n_dep, n_buffer, n_queue, n_bucket, n_slot;
    int64_t trained_elems, arena_bytes, live_bytes;
} role_head;

typedef struct program_head {
    int32_t mode, dtype, dp, micro, n_role, n_group, n_member, clients, bn, device, n_call, n_part, zero,
        local, n_seat, n_share;
    int64_t batch, micro_batch;
} program_head;

static program_head head_of(const hp_program *p) {
    return (program_head){p->mode,     p->dtype,   p->dp,     p->micro,   p->n_role, p->n_group,
                          p->n_member, p->clients, p->bn,     p->device,  p->n_call, p->n_part,
                          p->zero,     p->local,   p->n_seat, p->n_share, p->batch,  p->micro_batch};
}

static role_head role_head_of(const hp_role *r) {
    return (role_head){r->stage,    r->n_task, r->n_operand,     r->n_dep,       r->n_buffer,  r->n_queue,
                       r->n_bucket, r->n_slot, r->trained_elems, r->arena_bytes, r->live_bytes};
}

static hp_status visit_tasks(const hp_role *r, int role, hp_blob_fn *fn, void *self, hp_error *err) {
    hp_stored_task *s = hp_alloc(sizeof *s * ((size_t)r->n_task + 1));
    for (int i = 0; i < r->n_task; i++) s[i] = hp_task_to_stored(&r->task[i]);
    const hp_status status = fn(self, role, "task", s, sizeof *s * (size_t)r->n_task, err);
    free(s);
    return status;
}

hp_status hp_program_visit(const hp_program *p, const hp_graph *g, hp_blob_fn *fn, void *self,
                           hp_error *err) {
    const program_head head = head_of(p);
    HP_TRY(fn(self, -1, "program", &head, sizeof head, err));
    HP_TRY(fn(self, -1, "group", p->group, sizeof *p->group * (size_t)p->n_group, err));
    HP_TRY(fn(self, -1, "member", p->member, sizeof *p->member * (size_t)p->n_member, err));
    HP_TRY(fn(self, -1, "call", p->call, sizeof *p->call * (size_t)p->n_call, err));
    HP_TRY(fn(self, -1, "part", p->part, sizeof *p->part * (size_t)p->n_part, err));
    HP_TRY(fn(self, -1, "seat", p->seat, sizeof *p->seat * (size_t)p->n_seat, err));
    if (p->n_share) HP_TRY(fn(self, -1, "share", p->share, sizeof *p->share * (size_t)p->n_share, err));
    for (int i = 0; i < p->n_role; i++) {
        const hp_role *r = &p->role[i];
        const role_head h = role_head_of(r);
        HP_TRY(fn(self, i, "role", &h, sizeof h, err));
        HP_TRY(fn(self, i, "slot", r->slot, sizeof *r->slot * (size_t)r->n_slot, err));
        HP_TRY(visit_tasks(r, i, fn, self, err));
        HP_TRY(fn(self, i, "operand", r->operand, sizeof *r->operand * (size_t)r->n_operand, err));
        HP_TRY(fn(self, i, "dep_first", r->dep_first, sizeof *r->dep_first * (size_t)(r->n_task + 1), err));
        HP_TRY(fn(self, i, "dep", r->dep, sizeof *r->dep * (size_t)r->n_dep, err));
        HP_TRY(fn(self, i, "buffer", r->buffer, sizeof *r->buffer * (size_t)r->n_buffer, err));
        HP_TRY(fn(self, i, "queue", r->queue, sizeof *r->queue * (size_t)r->n_queue, err));
        HP_TRY(fn(self, i, "bucket", r->bucket, sizeof *r->bucket * (size_t)r->n_bucket, err));
        HP_TRY(fn(self, i, "place", r->place, sizeof *r->place * (size_t)g->n_param, err));
        HP_TRY(
            fn(self, i, "pack_forward", r->pack_forward, sizeof *r->pack_forward * (size_t)g->n_layer, err));
        HP_TRY(fn(self, i, "pack_backward", r->pack_backward, sizeof *r->pack_backward * (size_t)g->n_layer,
                  err));
    }
    return HP_OK;
}

/* Reads a part into the arena. Allocates for the data that exists, whatever the header claims. */
static hp_status fetch(hp_arena *arena, hp_fetch_fn *fn, void *self, int role, const char *part, size_t elem,
                       int64_t n, void **out, hp_error *err) {
    if (n < 0 || n > INT32_MAX)
        return hp_fail(err, HP_EDATA, "program part %s of stage %d has an impossible size", part, role);
    HP_TRY(fn(self, role, part, NULL, elem * (size_t)n, err));
    *out = hp_arena_alloc(arena, elem * (size_t)n + 1);
    return fn(self, role, part, *out, elem * (size_t)n, err);
}

static hp_status read_tasks(hp_arena *arena, hp_fetch_fn *fn, void *self, int role, hp_role *r,
                            hp_error *err) {
    hp_arena *scratch = hp_arena_new();
    hp_stored_task *s = NULL;
    const hp_status status = fetch(scratch, fn, self, role, "task", sizeof *s, r->n_task, (void **)&s, err);
    if (status == HP_OK) r->task = HP_NEW(arena, hp_task, r->n_task);
    for (int i = 0; status == HP_OK && i < r->n_task; i++) r->task[i] = hp_task_from_stored(&s[i]);
    hp_arena_free(scratch);
    return status;
}

#define FETCH(part, field, n)                                                                                \
    HP_TRY(fetch(arena, fn, self, i, part, sizeof *r->field, n, (void **)&r->field, err))

static hp_status read_role(hp_arena *arena, const hp_graph *g, hp_fetch_fn *fn, void *self, int i, hp_role *r,
                           hp_error *err) {
    role_head h;
    HP_TRY(fn(self, i, "role", &h, sizeof h, err));
    *r = (hp_role){.stage = h.stage,
                   .n_task = h.n_task,
                   .n_operand = h.n_operand,
                   .n_dep = h.n_dep,
                   .n_buffer = h.n_buffer,
                   .n_queue = h.n_queue,
                   .n_bucket = h.n_bucket,
                   .n_slot = h.n_slot,
                   .trained_elems = h.trained_elems,
                   .arena_bytes = h.arena_bytes,
                   .live_bytes = h.live_bytes};
    FETCH("slot", slot, h.n_slot);
    HP_TRY(read_tasks(arena, fn, self, i, r, err));
    FETCH("operand", operand, h.n_operand);
    FETCH("dep_first", dep_first, (int64_t)h.n_task + 1);
    FETCH("dep", dep, h.n_dep);
    FETCH("buffer", buffer, h.n_buffer);
    FETCH("queue", queue, h.n_queue);
    FETCH("bucket", bucket, h.n_bucket);
    FETCH("place", place, g->n_param);
    FETCH("pack_forward", pack_forward, g->n_layer);
    FETCH("pack_backward", pack_backward, g->n_layer);
    return HP_OK;
}

hp_status hp_program_fetch(hp_arena *arena, const hp_graph *g, hp_fetch_fn *fn, void *self,
                           hp_program **program, hp_error *err) {
    program_head h;
    HP_TRY(fn(self, -1, "program", &h, sizeof h, err));
    if (h.n_role < 1 || h.n_role > HP_MAX_ROLES || h.n_group < 1)
        return hp_fail(err, HP_EDATA, "the stored program has %d roles", h.n_role);
    if (h.device < 0 || h.device >= HP_DEVICES)
        return hp_fail(err, HP_EDATA, "the stored program is for device %d, which does not exist", h.device);
    hp_program *p = HP_NEW(arena, hp_program, 1);
    *p = (hp_program){.mode = h.mode,
                      .dtype = h.dtype,
                      .dp = h.dp,
                      .micro = h.micro,
                      .batch = h.batch,
                      .micro_batch = h.micro_batch,
                      .n_role = h.n_role,
                      .n_group = h.n_group,
                      .n_member = h.n_member,
                      .clients = h.clients,
                      .bn = h.bn,
                      .device = h.device,
                      .n_call = h.n_call,
                      .n_part = h.n_part,
                      .zero = h.zero,
                      .local = h.local,
                      .n_seat = h.n_seat,
                      .n_share = h.n_share};
    HP_TRY(fetch(arena, fn, self, -1, "group", sizeof *p->group, h.n_group, (void **)&p->group, err));
    HP_TRY(fetch(arena, fn, self, -1, "member", sizeof *p->member, h.n_member, (void **)&p->member, err));
    HP_TRY(fetch(arena, fn, self, -1, "call", sizeof *p->call, h.n_call, (void **)&p->call, err));
    HP_TRY(fetch(arena, fn, self, -1, "part", sizeof *p->part, h.n_part, (void **)&p->part, err));
    HP_TRY(fetch(arena, fn, self, -1, "seat", sizeof *p->seat, h.n_seat, (void **)&p->seat, err));
    if (h.n_share)
        HP_TRY(fetch(arena, fn, self, -1, "share", sizeof *p->share, h.n_share, (void **)&p->share, err));
    p->role = HP_NEW(arena, hp_role, h.n_role);
    for (int i = 0; i < h.n_role; i++) HP_TRY(read_role(arena, g, fn, self, i, &p->role[i], err));
    *program = p;
    return HP_OK;
}
