/* bench_program.c - hand-written programs: chains of messages, each waiting for the previous one. */
#include "cli/calibrate/bench_program.h"

#include "plan/program/compose.h"

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

/* Starts a role with room for n_task tasks with one dependency each. */
static void start_role(hp_arena *arena, const hp_graph *g, hp_role *r, int n_task, int64_t grad_bytes) {
    const hp_compose_room room = {n_task, 2 * n_task, 2 * n_task, 2, 2};
    hp_compose_begin(arena, g, r, &room, grad_bytes);
}

/* Adds a message task that waits for `dep`; -1: for nothing. */
static void add_task(const hp_program *p, hp_role *r, hp_task_op op, int queue, int buffer, int64_t count,
                     int tag, int dep) {
    const hp_composed t = {op, queue, tag, 1, {buffer, -1}, dep >= 0, {dep}, count};
    hp_compose_task(p, r, &t);
}

/* Adds a collective after the previous one; between two buffers, there and back, if programs do so. */
static void add_collective(const hp_program *p, hp_role *r, hp_collective what, int64_t count, int tag) {
    hp_composed t = {.op = hp_task_of_collective(what),
                     .queue = 1,
                     .tag = tag,
                     .n_operand = 1,
                     .operand = {HP_BUF_GRADS},
                     .n_dep = r->n_task > 0,
                     .dep = {r->n_task - 1},
                     .count = count};
    if (!bench_in_place(what)) {
        t.n_operand = 2;
        t.operand[0] = HP_BUF_FIXED + r->n_task % 2;
        t.operand[1] = HP_BUF_FIXED + (r->n_task + 1) % 2;
        if (r->n_task > 1) t.dep[t.n_dep++] = r->n_task - 2; /* the previous one in the same direction */
    }
    hp_compose_task(p, r, &t);
}

/* --- programs --- */

hp_program *bench_collectives(hp_arena *arena, const hp_graph *g, int ranks, const bench_sizes *s,
                              const bench_way *way) {
    const hp_compose_shape shape = {.dp = ranks, .n_role = 1, .device = way->device};
    hp_program *p = hp_compose_program(arena, &shape);
    hp_role *r = &p->role[0];
    if (way->per_node > 0 && way->per_node < ranks) {
        p->call = HP_NEW(arena, hp_call, 1);
        p->call[p->n_call++] = (hp_call){.per_node = way->per_node};
    }
    const bool rooted = hp_collective_rooted(way->what);
    start_role(arena, g, r, (1 + rooted) * all_rounds(s), bench_in_place(way->what) ? most_bytes(s) : 0);
    for (int i = 0; i < 2 && !bench_in_place(way->what); i++) hp_compose_buffer(r, most_bytes(s) / 4);
    hp_compose_queue(r, (hp_queue){.kind = HP_QUEUE_COLL, .peer = 1, .backend = (int32_t)way->backend});
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->rounds[i]; k++) {
            /* keeps everyone in step, so that no data arrives before it is requested */
            if (rooted) add_task(p, r, HP_TASK_BARRIER, 1, HP_BUF_GRADS, 0, i, r->n_task - 1);
            add_collective(p, r, way->what, s->elems[i], i);
            if (way->algorithm) r->task[r->n_task - 1].algorithm = (uint8_t)way->algorithm;
        }
    hp_compose_end(r);
    return p;
}

/* Role 0 serves (channel 0), role 1 returns (channel 1). */
hp_program *bench_ping_pong(hp_arena *arena, const hp_graph *g, const bench_sizes *s, const bench_way *way) {
    const int32_t by = (int32_t)way->backend;
    enum { OUT = HP_BUF_FIXED, IN };
    const hp_compose_shape shape = {.dp = 1, .n_role = 2, .device = way->device};
    hp_program *p = hp_compose_program(arena, &shape);
    for (int role = 0; role < 2; role++) {
        hp_role *r = &p->role[role];
        start_role(arena, g, r, 2 * all_rounds(s), 0);
        r->stage = role;
        hp_compose_buffer(r, most_bytes(s) / 4);
        hp_compose_buffer(r, most_bytes(s) / 4);
        hp_compose_queue(r, (hp_queue){HP_QUEUE_SEND, 1 - role, role, by});
        hp_compose_queue(r, (hp_queue){HP_QUEUE_RECV, 1 - role, 1 - role, by});
        int n = 0;
        for (int i = 0; i < s->n; i++)
            for (int k = 0; k < s->rounds[i]; k++, n++) {
                const int last_recv = n == 0 ? -1 : r->n_task - 1 - role; /* the tasks alternate */
                if (role == 0) add_task(p, r, HP_TASK_SEND, 1, OUT, s->elems[i], n, last_recv);
                add_task(p, r, HP_TASK_RECV, 2, IN, s->elems[i], n,
                         last_recv); /* posted early, as in real programs */
                if (role == 1) add_task(p, r, HP_TASK_SEND, 1, OUT, s->elems[i], n, r->n_task - 1);
            }
        hp_compose_end(r);
    }
    return p;
}
