/* check_waits.c - can every task start? Builds the wait-for graph over all ranks of one replica, with
 * synchronous sends.
 *
 * A compute task is done when it starts. A synchronous send is done only once its receive has started, a
 * collective once all members have started it. Whatever cannot start or end after all possible progress waits
 * in a cycle. Replicas run the same lists, so one stands for all.
 *
 * Linear in tasks and dependencies, because the search runs it for every candidate. */
#include "plan/check/check_inside.h"
#include "plan/program/print.h"

#include <string.h>

typedef struct task_at {
    int32_t role, task;
} task_at;

typedef struct waits {
    const hp_program *p;
    const hp_wiring *w;
    hp_ready *ready;   /* per role */
    bool **done;       /* per role and task */
    int32_t **missing; /* per group and collective: number of members that have not started it */
    int64_t n_starting;
    task_at *starting; /* tasks that may start, in order of readiness */
} waits;

static const hp_queue *queue_of(const waits *w, task_at t) {
    return hp_wired_queue_of(&w->w->role[t.role], t.task);
}

static bool has_started(const waits *w, task_at t) {
    return hp_ready_started(&w->ready[t.role], t.task);
}

/* --- everything possible happens --- */

static void add_starting(waits *w, int role, int task) {
    if (task >= 0) w->starting[w->n_starting++] = (task_at){role, task};
}

static void finish(waits *w, task_at t) {
    const hp_wired_role *r = &w->w->role[t.role];
    w->done[t.role][t.task] = true;
    for (int i = r->succ_first[t.task]; i < r->succ_first[t.task + 1]; i++)
        if (hp_ready_meet(&w->ready[t.role], r->succ[i])) add_starting(w, t.role, r->succ[i]);
}

/* A message without another end blocks nothing here: check/check_messages.c rejects it. */
static void start_message(waits *w, task_at t) {
    const task_at other = {queue_of(w, t)->peer, hp_wired_other_end(w->w, t.role, t.task)};
    if (other.task >= 0 && !has_started(w, other)) return;
    finish(w, t);
    if (other.task >= 0) finish(w, other);
}

static void start_collective(waits *w, task_at t) {
    const int group = queue_of(w, t)->peer, k = w->w->role[t.role].place[t.task];
    const hp_wired_group *g = &w->w->group[group];
    if (--w->missing[group][k] > 0) return;
    for (int i = 0; i < g->n; i++) {
        const task_at call = {g->role[i], hp_wired_call(w->w, g, i, k)};
        if (call.task >= 0) finish(w, call);
    }
}

static void start(waits *w, task_at t) {
    const int kind = queue_of(w, t)->kind;
    add_starting(w, t.role, hp_ready_start(&w->ready[t.role], w->p->role[t.role].task[t.task].queue));
    if (kind == HP_QUEUE_COMPUTE) finish(w, t);
    if (kind == HP_QUEUE_SEND || kind == HP_QUEUE_RECV) start_message(w, t);
    if (kind == HP_QUEUE_COLL) start_collective(w, t);
}

static void open_collectives(waits *w, hp_arena *arena) {
    w->missing = HP_NEW(arena, int32_t *, w->p->n_group);
    for (int i = 0; i < w->p->n_group; i++) {
        const hp_wired_group *g = &w->w->group[i];
        w->missing[i] = HP_NEW(arena, int32_t, g->calls);
        for (int m = 0; m < g->n; m++)
            for (int k = 0; hp_wired_call(w->w, g, m, k) >= 0; k++) w->missing[i][k]++;
    }
}

static void open_roles(waits *w, hp_arena *arena) {
    int64_t n_task = 0;
    w->ready = HP_NEW(arena, hp_ready, w->p->n_role);
    w->done = HP_NEW(arena, bool *, w->p->n_role);
    for (int r = 0; r < w->p->n_role; r++) {
        hp_ready_init(arena, &w->w->role[r], &w->ready[r]);
        w->done[r] = HP_NEW(arena, bool, w->p->role[r].n_task);
        n_task += w->p->role[r].n_task;
    }
    w->starting = HP_NEW(arena, task_at, n_task);
    for (int r = 0; r < w->p->n_role; r++)
        for (int q = 0; q < w->p->role[r].n_queue; q++) add_starting(w, r, hp_ready_task(&w->ready[r], q));
}

/* Returns a task that never finishes; task -1 if all do. */
static task_at run(waits *w) {
    for (int64_t i = 0; i < w->n_starting; i++) start(w, w->starting[i]);
    for (int r = 0; r < w->p->n_role; r++)
        for (int t = 0; t < w->p->role[r].n_task; t++)
            if (!w->done[r][t]) return (task_at){r, t};
    return (task_at){0, -1};
}

/* --- the circle --- */

/* Finds a member that has not started the collective. */
static task_at missing_call(const waits *w, task_at t) {
    const hp_wired_group *g = &w->w->group[queue_of(w, t)->peer];
    const int k = w->w->role[t.role].place[t.task];
    for (int i = 0;; i++) {
        const task_at call = {g->role[i], hp_wired_call(w->w, g, i, k)};
        if (call.task >= 0 && !has_started(w, call)) return call;
    }
}

/* Finds a task whose start or end the blocked task waits for. */
static task_at waits_for(const waits *w, task_at t) {
    const hp_wired_role *r = &w->w->role[t.role];
    const hp_queue *q = queue_of(w, t);
    if (has_started(w, t)) /* the other side is missing */
        return q->kind == HP_QUEUE_COLL ? missing_call(w, t)
                                        : (task_at){q->peer, hp_wired_other_end(w->w, t.role, t.task)};
    for (int i = r->role->dep_first[t.task]; i < r->role->dep_first[t.task + 1]; i++)
        if (!w->done[t.role][r->role->dep[i]]) return (task_at){t.role, r->role->dep[i]};
    return (task_at){t.role, hp_wired_task(r, r->role->task[t.task].queue, r->place[t.task] - 1)};
}

typedef struct circle {
    char ranks[200], tasks[600];
    int n_rank;
    bool *named; /* per role */
} circle;

static void name_task(const waits *w, const hp_graph *g, task_at t, circle *c) {
    char label[200];
    if (!c->named[t.role]) {
        const size_t have = strlen(c->ranks);
        if (have < sizeof c->ranks - 8)
            snprintf(c->ranks + have, sizeof c->ranks - have, "%s%d", c->n_rank ? ", " : "", t.role);
        c->named[t.role] = true;
        c->n_rank++;
    }
    const size_t have = strlen(c->tasks);
    if (have < 400)
        snprintf(c->tasks + have, sizeof c->tasks - have, "%srank %d: %s", have ? " <- " : "", t.role,
                 hp_task_label(w->p, g, &w->p->role[t.role], t.task, label, sizeof label));
}

/* Follows the waits from a blocked task until one repeats: the cycle starts there. */
static hp_status describe_circle(const waits *w, hp_arena *arena, const hp_graph *g, task_at blocked,
                                 hp_error *err) {
    bool **seen = HP_NEW(arena, bool *, w->p->n_role);
    for (int r = 0; r < w->p->n_role; r++) seen[r] = HP_NEW(arena, bool, w->p->role[r].n_task);
    circle c = {.named = HP_NEW(arena, bool, w->p->n_role)};
    task_at t = blocked;
    for (; !seen[t.role][t.task]; t = waits_for(w, t)) seen[t.role][t.task] = true;
    const task_at first = t;
    do {
        name_task(w, g, t, &c);
        t = waits_for(w, t);
    } while (t.role != first.role || t.task != first.task);
    if (c.n_rank < 2)
        return hp_fail(err, HP_EPLAN, "E-CYCLE: rank %s waits for itself: %s", c.ranks, c.tasks);
    return hp_fail(err, HP_EPLAN, "E-DEADLOCK: ranks %s wait for each other: %s", c.ranks, c.tasks);
}

hp_status hp_check_waits(const hp_wiring *wiring, const hp_graph *g, hp_error *err) {
    waits w = {.p = wiring->program, .w = wiring};
    hp_arena *arena = hp_arena_new();
    open_collectives(&w, arena);
    open_roles(&w, arena);
    const task_at blocked = run(&w);
    const hp_status s = blocked.task < 0 ? HP_OK : describe_circle(&w, arena, g, blocked, err);
    hp_arena_free(arena);
    return s;
}
