/* bounds.c - the critical path as a longest path in topological order (Kahn 1962), and what a step moves. */
#include "sim/bounds.h"

#include "sim/wiring.h"

#include <math.h>

typedef struct place {
    int32_t role, task;
} place;

typedef struct path {
    const hp_program *p;
    const hp_graph *g;
    const hp_sim_costs *costs;
    hp_wiring *w;
    int bound;
    int32_t **wait;     /* per role and task: what must be settled before its start is known */
    int64_t **ready_ns; /* latest finish among those */
    int32_t **met;      /* per group and collective: members whose start is known */
    place *stack;       /* tasks whose start is known */
    int32_t n_stack, capacity;
    hp_arena *arena;
    int64_t end_ns, settled;
} path;

static int64_t duration_ns(const path *x, int role, int task) {
    return llround(x->costs->seconds(x->costs->self, x->p, x->g, role, task, x->bound) * 1e9);
}

static void push(path *x, int role, int task) {
    HP_ROOM(x->arena, x->stack, x->n_stack, x->capacity);
    x->stack[x->n_stack++] = (place){role, task};
}

static void relax(path *x, int role, int task, int64_t t_ns) {
    if (t_ns > x->ready_ns[role][task]) x->ready_ns[role][task] = t_ns;
    if (--x->wait[role][task] == 0) push(x, role, task);
}

/* A task's finish is known: its dependents learn it, and in the compute queue also the next task. */
static void finish(path *x, int role, int task, int64_t t_ns) {
    const hp_wired_role *w = &x->w->role[role];
    x->settled++;
    if (t_ns > x->end_ns) x->end_ns = t_ns;
    for (int i = w->succ_first[task]; i < w->succ_first[task + 1]; i++) relax(x, role, w->succ[i], t_ns);
    const hp_wired_queue *q = &w->queue[w->role->task[task].queue];
    const int next = w->place_in_queue[task] + 1;
    if (w->role->task[task].queue == 0 && next < q->n) relax(x, role, q->task[next], t_ns);
}

/* The start of a communication task passes on to the next of its queue: they start in order. */
static void start_next(path *x, int role, int task) {
    const hp_wired_role *w = &x->w->role[role];
    const hp_wired_queue *q = &w->queue[w->role->task[task].queue];
    const int next = w->place_in_queue[task] + 1;
    if (next < q->n) relax(x, role, q->task[next], x->ready_ns[role][task]);
}

/* Both ends known: they finish together. */
static void meet_message(path *x, int role, int task) {
    const hp_wired_role *w = &x->w->role[role];
    const int q = w->role->task[task].queue, k = w->place_in_queue[task];
    const int peer = w->role->queue[q].peer, partner = w->queue[q].partner;
    if (partner < 0 || k >= x->w->role[peer].queue[partner].n) return;
    const int other = x->w->role[peer].queue[partner].task[k];
    if (x->wait[role][task] < 0 || x->wait[peer][other] > 0) return;
    const int64_t a = x->ready_ns[role][task], b = x->ready_ns[peer][other];
    const bool sends = w->role->queue[q].kind == HP_QUEUE_SEND;
    const int64_t t = (a > b ? a : b) + duration_ns(x, sends ? role : peer, sends ? task : other);
    x->wait[peer][other] = x->wait[role][task] = -1;
    finish(x, role, task, t);
    finish(x, peer, other, t);
}

/* The k-th collective of a group: once all members are known they finish together. Replicas are alike, so
 * that those of one stand for all. */
static void meet_collective(path *x, int role, int task) {
    const hp_wired_role *w = &x->w->role[role];
    const int k = w->place_in_queue[task];
    const hp_wired_group *g = &x->w->group[w->role->queue[w->role->task[task].queue].peer];
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
    x->wait = HP_NEW(x->arena, int32_t *, x->w->n_role);
    x->ready_ns = HP_NEW(x->arena, int64_t *, x->w->n_role);
    for (int r = 0; r < x->w->n_role; r++) {
        const hp_wired_role *w = &x->w->role[r];
        x->wait[r] = HP_NEW(x->arena, int32_t, w->role->n_task);
        x->ready_ns[r] = HP_NEW(x->arena, int64_t, w->role->n_task);
        for (int t = 0; t < w->role->n_task; t++) {
            const int before = w->place_in_queue[t] > 0 ? 1 : 0;
            x->wait[r][t] = w->role->dep_first[t + 1] - w->role->dep_first[t] + before;
        }
    }
    x->met = HP_NEW(x->arena, int32_t *, x->p->n_group);
    for (int g = 0; g < x->p->n_group; g++) x->met[g] = HP_NEW(x->arena, int32_t, x->w->group[g].calls);
    for (int r = 0; r < x->w->n_role; r++) {
        for (int t = 0; t < x->w->role[r].role->n_task; t++) {
            if (x->wait[r][t] == 0) push(x, r, t);
        }
    }
}

int64_t hp_sim_critical_path_ns(hp_arena *arena, const hp_program *p, const hp_graph *g,
                                const hp_sim_costs *costs, int bound) {
    path x = {
        .p = p, .g = g, .costs = costs, .bound = bound, .arena = arena, .w = hp_wiring_new(arena, p, true)};
    init(&x);
    int64_t tasks = 0;
    for (int r = 0; r < p->n_role; r++) tasks += p->role[r].n_task;
    while (x.n_stack > 0) {
        const place at = x.stack[--x.n_stack];
        const int role = at.role, task = at.task;
        const hp_role *r = &p->role[role];
        const hp_queue_kind kind = r->queue[r->task[task].queue].kind;
        if (kind == HP_QUEUE_COMPUTE) {
            finish(&x, role, task, x.ready_ns[role][task] + duration_ns(&x, role, task));
            continue;
        }
        start_next(&x, role, task);
        if (kind == HP_QUEUE_COLL)
            meet_collective(&x, role, task);
        else
            meet_message(&x, role, task);
    }
    return x.settled == tasks ? x.end_ns : INT64_MAX;
}

int64_t hp_sim_comm_bytes(const hp_program *p) {
    double bytes = 0;
    for (int i = 0; i < p->n_role; i++) {
        const hp_role *r = &p->role[i];
        for (int t = 0; t < r->n_task; t++) {
            const hp_task *k = &r->task[t];
            const double moved = (double)k->count * hp_dtype_bytes((hp_dtype)k->dtype);
            if (k->op == HP_TASK_SEND) bytes += moved;
            if (k->op != HP_TASK_ALLREDUCE) continue;
            const double n = hp_group_size(p, r->queue[k->queue].peer);
            bytes +=
                2 * (n - 1) / n * moved; /* what a ring moves: communication volume of data parallelism */
        }
    }
    return (int64_t)llround(bytes * p->dp);
}
