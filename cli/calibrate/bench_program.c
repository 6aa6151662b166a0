/* bench_program.c - programs written by hand: chains of messages, each waiting for the one before. */
#include "cli/calibrate/bench_program.h"

#include <string.h>

bench_sizes bench_sizes_make(int64_t begin, int64_t end, int64_t factor, int rounds, int64_t most_bytes) {
    bench_sizes s = {.n = 0};
    for (int64_t bytes = begin < 4 ? 4 : begin; bytes <= end && s.n < 64; bytes *= factor) {
        const double most = (double)most_bytes / (double)bytes;
        s.elems[s.n] = bytes / 4;
        s.rounds[s.n++] = most < 2 ? 2 : most < rounds ? (int)most : rounds;
    }
    return s;
}

static int all_rounds(const bench_sizes *s) {
    int n = 0;
    for (int i = 0; i < s->n; i++) n += s->rounds[i];
    return n;
}

static int64_t most_bytes(const bench_sizes *s) {
    int64_t most = 0;
    for (int i = 0; i < s->n; i++)
        if (4 * s->elems[i] > most) most = 4 * s->elems[i];
    return most;
}

/* --- pieces --- */

enum { ALIGN = 64 };

static void add_buffer(hp_role *r, hp_buffer_kind kind, hp_dtype dtype, int64_t bytes) {
    hp_buffer *b = &r->buffer[r->n_buffer++];
    *b = (hp_buffer){.kind = (uint8_t)kind,
                     .dtype = (uint8_t)dtype,
                     .what = -1,
                     .micro = -1,
                     .bytes = bytes,
                     .offset = bytes > 0 ? r->arena_bytes : 0};
    r->arena_bytes += (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* A role with room for n_task tasks of one dependency each, and the buffers every role has. */
static void start_role(hp_arena *arena, const hp_graph *g, hp_role *r, int n_task, int64_t grad_bytes) {
    *r = (hp_role){.stage = r->stage,
                   .n_slot = r->n_slot,
                   .slot = r->slot,
                   .task = HP_NEW(arena, hp_task, n_task),
                   .operand = HP_NEW(arena, int32_t, n_task),
                   .dep_first = HP_NEW(arena, int32_t, n_task + 1),
                   .dep = HP_NEW(arena, int32_t, n_task),
                   .buffer = HP_NEW(arena, hp_buffer, HP_BUF_FIXED + 2),
                   .queue = HP_NEW(arena, hp_queue, 3),
                   .place = HP_NEW(arena, hp_param_place, g->n_param),
                   .pack_forward = HP_NEW(arena, int32_t, g->n_layer),
                   .pack_backward = HP_NEW(arena, int32_t, g->n_layer)};
    for (int l = 0; l < g->n_layer; l++) r->pack_forward[l] = r->pack_backward[l] = -1;
    add_buffer(r, HP_BUF_WEIGHTS, HP_F32, 0);
    add_buffer(r, HP_BUF_GRADS, HP_F32, grad_bytes);
    add_buffer(r, HP_BUF_MOMENTUM, HP_F32, 0);
    add_buffer(r, HP_BUF_STATE, HP_F32, 0);
    add_buffer(r, HP_BUF_METRIC, HP_F64, HP_METRICS * 8);
    add_buffer(r, HP_BUF_SCRATCH, HP_U8, 0);
    r->queue[r->n_queue++] = (hp_queue){.kind = HP_QUEUE_COMPUTE, .peer = -1, .channel = -1};
}

static void end_role(hp_role *r) {
    for (int b = 0; b < r->n_buffer; b++) r->buffer[b].last = b < HP_BUF_FIXED ? r->n_task : r->n_task - 1;
    r->live_bytes = r->arena_bytes;
}

/* A message task that waits for `dep`; -1 = for nothing. */
static void add_task(const hp_program *p, hp_role *r, hp_task_op op, int queue, int buffer, int64_t count,
                     int tag, int dep) {
    r->operand[r->n_operand] = buffer;
    r->task[r->n_task] = (hp_task){.op = (uint8_t)op,
                                   .dtype = HP_F32,
                                   .queue = (int16_t)queue,
                                   .layer = -1,
                                   .micro = -1,
                                   .tag = tag,
                                   .operand = r->n_operand,
                                   .n_operand = 1,
                                   .call = hp_task_infos[op].queue == HP_QUEUE_COLL ? p->n_call : 0,
                                   .count = count};
    r->task[r->n_task].algorithm = (uint8_t)hp_task_algorithm(p, r, &r->task[r->n_task]);
    r->n_operand++;
    if (dep >= 0) r->dep[r->n_dep++] = dep;
    r->dep_first[++r->n_task] = r->n_dep;
}

static hp_program *start_program(hp_arena *arena, int dp, int n_role, const bench_way *way) {
    hp_program *p = HP_NEW(arena, hp_program, 1);
    *p = (hp_program){.mode = HP_MODE_INFER,
                      .dtype = HP_F32,
                      .dp = dp,
                      .micro = 1,
                      .batch = dp,
                      .micro_batch = 1,
                      .n_role = n_role,
                      .clients = 1,
                      .device = (int32_t)way->device,
                      .n_group = 1 + n_role,
                      .n_member = n_role,
                      .member = HP_NEW(arena, int32_t, n_role),
                      .role = HP_NEW(arena, hp_role, n_role),
                      .group = HP_NEW(arena, hp_group, 1 + n_role)};
    p->group[0] = (hp_group){.first = 0, .n = n_role, .all_replicas = 1};
    for (int r = 0; r < n_role; r++) {
        p->group[1 + r] = (hp_group){.first = r, .n = 1, .all_replicas = 1};
        p->member[r] = r;
        p->role[r].stage = r;
        p->role[r].n_slot = 1;
        p->role[r].slot = HP_NEW(arena, hp_slot, 1);
        p->role[r].slot[0].stage = r;
    }
    return p;
}

/* --- programs --- */

hp_program *bench_collectives(hp_arena *arena, const hp_graph *g, int ranks, const bench_sizes *s,
                              const bench_way *way) {
    hp_program *p = start_program(arena, ranks, 1, way);
    hp_role *r = &p->role[0];
    if (way->per_node > 0 && way->per_node < ranks) {
        p->call = HP_NEW(arena, hp_call, 1);
        p->call[p->n_call++] = (hp_call){.per_node = way->per_node};
    }
    const bool rooted = hp_collective_rooted(way->what);
    start_role(arena, g, r, (1 + rooted) * all_rounds(s), most_bytes(s));
    r->queue[r->n_queue++] =
        (hp_queue){.kind = HP_QUEUE_COLL, .peer = 1, .channel = 0, .backend = (int32_t)way->backend};
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->rounds[i]; k++) {
            /* nobody runs ahead of the others, so that data would be there before it is asked for */
            if (rooted) add_task(p, r, HP_TASK_BARRIER, 1, HP_BUF_GRADS, 0, i, r->n_task - 1);
            add_task(p, r, hp_task_of_collective(way->what), 1, HP_BUF_GRADS, s->elems[i], i, r->n_task - 1);
            if (way->algorithm) r->task[r->n_task - 1].algorithm = (uint8_t)way->algorithm;
        }
    end_role(r);
    return p;
}

/* Role 0 serves (channel 0), role 1 returns (channel 1). */
hp_program *bench_ping_pong(hp_arena *arena, const hp_graph *g, const bench_sizes *s, const bench_way *way) {
    const int32_t by = (int32_t)way->backend;
    enum { OUT = HP_BUF_FIXED, IN };
    hp_program *p = start_program(arena, 1, 2, way);
    for (int role = 0; role < 2; role++) {
        hp_role *r = &p->role[role];
        start_role(arena, g, r, 2 * all_rounds(s), 0);
        r->stage = role;
        add_buffer(r, HP_BUF_TENSOR, HP_F32, most_bytes(s));
        add_buffer(r, HP_BUF_TENSOR, HP_F32, most_bytes(s));
        r->queue[r->n_queue++] = (hp_queue){HP_QUEUE_SEND, 1 - role, role, by};
        r->queue[r->n_queue++] = (hp_queue){HP_QUEUE_RECV, 1 - role, 1 - role, by};
        int n = 0;
        for (int i = 0; i < s->n; i++)
            for (int k = 0; k < s->rounds[i]; k++, n++) {
                const int last_recv = n == 0 ? -1 : r->n_task - 1 - role; /* the tasks alternate */
                if (role == 0) add_task(p, r, HP_TASK_SEND, 1, OUT, s->elems[i], n, last_recv);
                add_task(p, r, HP_TASK_RECV, 2, IN, s->elems[i], n,
                         last_recv); /* posted early, as programs do */
                if (role == 1) add_task(p, r, HP_TASK_SEND, 1, OUT, s->elems[i], n, r->n_task - 1);
            }
        end_role(r);
    }
    return p;
}
