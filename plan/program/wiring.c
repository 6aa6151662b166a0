/* wiring.c - derives, once per program, what both interpreters and the checks look up all the time. */
#include "plan/program/wiring.h"

#include <stdlib.h>

/* --- queues --- */

static void wire_queues(hp_arena *arena, hp_wired_role *w) {
    const hp_role *r = w->role;
    int32_t *tasks = HP_NEW(arena, int32_t, r->n_task);
    w->queue = HP_NEW(arena, hp_wired_queue, r->n_queue);
    w->place = HP_NEW(arena, int32_t, r->n_task);
    for (int t = 0; t < r->n_task; t++) w->place[t] = w->queue[r->task[t].queue].n++;
    for (int q = 0; q < r->n_queue; q++) {
        w->queue[q].task = tasks;
        w->queue[q].partner = -1;
        tasks += w->queue[q].n;
    }
    for (int t = 0; t < r->n_task; t++) w->queue[r->task[t].queue].task[w->place[t]] = t;
}

int hp_queue_compare(const hp_queue *a, const hp_queue *b) {
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->peer != b->peer) return a->peer < b->peer ? -1 : 1;
    if (a->channel != b->channel) return a->channel < b->channel ? -1 : 1;
    return 0;
}

typedef struct sort_key {
    hp_queue queue;
    int32_t id;
} sort_key;

static int compare_keys(const void *a, const void *b) {
    const sort_key *x = a, *y = b;
    const int order = hp_queue_compare(&x->queue, &y->queue);
    return order ? order : x->id - y->id;
}

static void sort_queues(hp_arena *arena, hp_wired_role *w) {
    const int n = w->role->n_queue;
    sort_key *keys = HP_NEW(arena, sort_key, n);
    w->sorted_queue = HP_NEW(arena, int32_t, n);
    for (int q = 0; q < n; q++) keys[q] = (sort_key){w->role->queue[q], q};
    qsort(keys, (size_t)n, sizeof *keys, compare_keys);
    for (int q = 0; q < n; q++) w->sorted_queue[q] = keys[q].id;
}

int hp_wired_find(const hp_wired_role *w, hp_queue_kind kind, int peer, int channel) {
    const hp_queue want = {.kind = (int32_t)kind, .peer = peer, .channel = channel};
    const hp_role *r = w->role;
    int low = 0, high = r->n_queue;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (hp_queue_compare(&r->queue[w->sorted_queue[middle]], &want) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const int q = low < r->n_queue ? w->sorted_queue[low] : -1;
    return q >= 0 && hp_queue_compare(&r->queue[q], &want) == 0 ? q : -1;
}

/* --- dependencies turned round --- */

static void wire_successors(hp_arena *arena, hp_wired_role *w) {
    const hp_role *r = w->role;
    int32_t *first = w->succ_first = HP_NEW(arena, int32_t, r->n_task + 2);
    w->succ = HP_NEW(arena, int32_t, r->n_dep);
    for (int d = 0; d < r->n_dep; d++) first[r->dep[d] + 2]++;
    for (int t = 0; t < r->n_task; t++) first[t + 2] += first[t + 1];
    for (int t = 0; t < r->n_task; t++) /* moves first[on + 1] on to where it belongs */
        for (int d = r->dep_first[t]; d < r->dep_first[t + 1]; d++) w->succ[first[r->dep[d] + 1]++] = t;
}

void hp_wire_role(hp_arena *arena, const hp_role *role, hp_wired_role *w) {
    *w = (hp_wired_role){.role = role};
    wire_queues(arena, w);
    sort_queues(arena, w);
    wire_successors(arena, w);
}

/* --- between roles --- */

/* The peer's queue of the same channel in the other direction that points back at this role. */
static void wire_partners(hp_wiring *w, int role) {
    const hp_role *r = &w->program->role[role];
    for (int q = 1; q < r->n_queue; q++) {
        const hp_queue *queue = &r->queue[q];
        if (queue->kind != HP_QUEUE_SEND && queue->kind != HP_QUEUE_RECV) continue;
        const hp_queue_kind back = queue->kind == HP_QUEUE_SEND ? HP_QUEUE_RECV : HP_QUEUE_SEND;
        w->role[role].queue[q].partner = hp_wired_find(&w->role[queue->peer], back, role, queue->channel);
    }
}

static void add_caller(hp_wired_group *g, int role, int queue, int calls) {
    g->role[g->n] = role;
    g->queue[g->n++] = queue;
    if (calls > g->calls) g->calls = calls;
}

static void wire_groups(hp_arena *arena, hp_wiring *w) {
    const hp_program *p = w->program;
    int32_t *callers = HP_NEW(arena, int32_t, p->n_group);
    w->group = HP_NEW(arena, hp_wired_group, p->n_group);
    for (int r = 0; r < p->n_role; r++)
        for (int q = 1; q < p->role[r].n_queue; q++)
            if (p->role[r].queue[q].kind == HP_QUEUE_COLL) callers[p->role[r].queue[q].peer]++;
    for (int g = 0; g < p->n_group; g++) {
        w->group[g].role = HP_NEW(arena, int32_t, callers[g]);
        w->group[g].queue = HP_NEW(arena, int32_t, callers[g]);
    }
    for (int r = 0; r < p->n_role; r++)
        for (int q = 1; q < p->role[r].n_queue; q++)
            if (p->role[r].queue[q].kind == HP_QUEUE_COLL)
                add_caller(&w->group[p->role[r].queue[q].peer], r, q, w->role[r].queue[q].n);
}

hp_wiring *hp_wiring_new(hp_arena *arena, const hp_program *p) {
    hp_wiring *w = HP_NEW(arena, hp_wiring, 1);
    w->program = p;
    w->role = HP_NEW(arena, hp_wired_role, p->n_role);
    for (int r = 0; r < p->n_role; r++) hp_wire_role(arena, &p->role[r], &w->role[r]);
    for (int r = 0; r < p->n_role; r++) wire_partners(w, r);
    wire_groups(arena, w);
    return w;
}
