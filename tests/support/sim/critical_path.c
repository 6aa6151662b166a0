/* critical_path.c - the critical path as a longest path in topological order (Kahn 1962). */
#include "tests/support/sim/critical_path.h"

#include "plan/program/ready.h"

#include <math.h>

typedef struct place {
    int32_t role, task;
} place;

typedef struct path {
    const hp_program *p;
    const hp_graph *g;
    const hp_sim_costs *costs;
    hp_wiring *w;
    hp_ready *ready;    /* per role: a task starts once its start is known */
    int64_t **ready_ns; /* per role and task: latest finish among what it waits for */
    int32_t **met;      /* per group and collective: members whose start is known */
    place *stack;       /* tasks whose start is known */
    int32_t n_stack, capacity;
    hp_arena *arena;
    int64_t end_ns, settled;
} path;

static int64_t duration_ns(const path *x, int role, int task) {
    return llround(x->costs->seconds(x->costs->self, x->p, x->g, role, task) * 1e9);
}

static void push(path *x, int role, int task) {
    HP_ROOM(x->arena, x->stack, x->n_stack, x->capacity);
    x->stack[x->n_stack++] = (place){role, task};
}

/* A task waits for something that is known at t_ns. */
static void delay(path *x, int role, int task, int64_t t_ns) {
    if (t_ns > x->ready_ns[role][task]) x->ready_ns[role][task] = t_ns;
}

/* The start of a queue's head is known: the next one does not start before t_ns. */
static void start_next(path *x, int role, int queue, int64_t t_ns) {
    hp_ready *r = &x->ready[role];
    hp_ready_start(r, queue);
    const int next = hp_ready_head(r, queue);
    if (next < 0) return;
    delay(x, role, next, t_ns);
    if (hp_ready_task(r, queue) >= 0) push(x, role, next);
}

/* A task's finish is known: its dependents learn it. */
static void finish(path *x, int role, int task, int64_t t_ns) {
    const hp_wired_role *w = &x->w->role[role];
    x->settled++;
    if (t_ns > x->end_ns) x->end_ns = t_ns;
    for (int i = w->succ_first[task]; i < w->succ_first[task + 1]; i++) {
        delay(x, role, w->succ[i], t_ns);
        if (hp_ready_meet(&x->ready[role], w->succ[i])) push(x, role, w->succ[i]);
    }
}

/* The compute queue's next task follows the end of the one before. */
static void compute(path *x, int role, int task) {
    const int64_t t_ns = x->ready_ns[role][task] + duration_ns(x, role, task);
    finish(x, role, task, t_ns);
    start_next(x, role, 0, t_ns);
}

/* Both ends known: they finish together. */
static void meet_message(path *x, int role, int task) {
    const hp_queue *q = hp_wired_queue_of(&x->w->role[role], task);
    const int other = hp_wired_other_end(x->w, role, task);
    if (other < 0 || !hp_ready_started(&x->ready[q->peer], other)) return;
    const int64_t a = x->ready_ns[role][task], b = x->ready_ns[q->peer][other];
    const bool sends = q->kind == HP_QUEUE_SEND;
    const int64_t t = (a > b ? a : b) + duration_ns(x, sends ? role : q->peer, sends ? task : other);
    finish(x, role, task, t);
    finish(x, q->peer, other, t);
}

/* The k-th collective of a group: once all members are known they finish together. Replicas are alike, so
 * that those of one stand for all. */
static void meet_collective(path *x, int role, int task) {
    const hp_wired_role *w = &x->w->role[role];
    const int k = w->place[task];
    const hp_wired_group *g = &x->w->group[hp_wired_queue_of(w, task)->peer];
    int32_t *met = &x->met[g - x->w->group][k];
    int64_t start = 0, work = 0;
    if (++*met < g->n) return;
    for (int i = 0; i < g->n; i++) {
        const int t = hp_wired_call(x->w, g, i, k);
        if (x->ready_ns[g->role[i]][t] > start) start = x->ready_ns[g->role[i]][t];
        const int64_t ns = duration_ns(x, g->role[i], t);
        if (ns > work) work = ns;
    }
    for (int i = 0; i < g->n; i++) finish(x, g->role[i], hp_wired_call(x->w, g, i, k), start + work);
}

static void init(path *x) {
    const hp_program *p = x->p;
    x->ready = HP_NEW(x->arena, hp_ready, p->n_role);
    x->ready_ns = HP_NEW(x->arena, int64_t *, p->n_role);
    x->met = HP_NEW(x->arena, int32_t *, p->n_group);
    for (int g = 0; g < p->n_group; g++) x->met[g] = HP_NEW(x->arena, int32_t, x->w->group[g].calls);
    for (int r = 0; r < p->n_role; r++) {
        x->ready_ns[r] = HP_NEW(x->arena, int64_t, p->role[r].n_task);
        hp_ready_init(x->arena, &x->w->role[r], &x->ready[r]);
        for (int q = 0; q < p->role[r].n_queue; q++) {
            const int task = hp_ready_task(&x->ready[r], q);
            if (task >= 0) push(x, r, task);
        }
    }
}

static void start(path *x, int role, int task) {
    const hp_wired_role *w = &x->w->role[role];
    const hp_queue_kind kind = (hp_queue_kind)hp_wired_queue_of(w, task)->kind;
    if (kind == HP_QUEUE_COMPUTE) {
        compute(x, role, task);
        return;
    }
    start_next(x, role, w->role->task[task].queue, x->ready_ns[role][task]); /* they start in order */
    if (kind == HP_QUEUE_COLL)
        meet_collective(x, role, task);
    else
        meet_message(x, role, task);
}

int64_t critical_path_ns(hp_arena *arena, const hp_program *p, const hp_graph *g, const hp_sim_costs *costs) {
    path x = {.p = p, .g = g, .costs = costs, .arena = arena, .w = hp_wiring_new(arena, p)};
    init(&x);
    int64_t tasks = 0;
    for (int r = 0; r < p->n_role; r++) tasks += p->role[r].n_task;
    while (x.n_stack > 0) {
        const place at = x.stack[--x.n_stack];
        start(&x, at.role, at.task);
    }
    return x.settled == tasks ? x.end_ns : INT64_MAX;
}
