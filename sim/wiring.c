/* wiring.c - derives, once per program, what both the simulator and the critical path look up all the time.
 */
#include "sim/wiring.h"

static void wire_queues(hp_arena *arena, hp_wired_role *w) {
    const hp_role *r = w->role;
    w->queue = HP_NEW(arena, hp_wired_queue, r->n_queue);
    w->place_in_queue = HP_NEW(arena, int32_t, r->n_task);
    for (int t = 0; t < r->n_task; t++) w->place_in_queue[t] = w->queue[r->task[t].queue].n++;
    for (int q = 0; q < r->n_queue; q++) w->queue[q].task = HP_NEW(arena, int32_t, w->queue[q].n);
    for (int t = 0; t < r->n_task; t++) w->queue[r->task[t].queue].task[w->place_in_queue[t]] = t;
}

static void wire_successors(hp_arena *arena, hp_wired_role *w) {
    const hp_role *r = w->role;
    w->succ_first = HP_NEW(arena, int32_t, r->n_task + 1);
    w->succ = HP_NEW(arena, int32_t, r->n_dep);
    for (int d = 0; d < r->n_dep; d++) w->succ_first[r->dep[d] + 1]++;
    for (int t = 0; t < r->n_task; t++) w->succ_first[t + 1] += w->succ_first[t];
    int32_t *fill = HP_NEW(arena, int32_t, r->n_task);
    for (int t = 0; t < r->n_task; t++) {
        for (int d = r->dep_first[t]; d < r->dep_first[t + 1]; d++) {
            const int from = r->dep[d];
            w->succ[w->succ_first[from] + fill[from]++] = t;
        }
    }
}

/* The peer's queue of the same channel in the other direction that points back at this role. */
static int find_partner(const hp_program *p, int role, const hp_queue *q) {
    if (q->kind != HP_QUEUE_SEND && q->kind != HP_QUEUE_RECV) return -1;
    const uint8_t other = q->kind == HP_QUEUE_SEND ? HP_QUEUE_RECV : HP_QUEUE_SEND;
    const hp_role *peer = &p->role[q->peer];
    for (int i = 0; i < peer->n_queue; i++) {
        const hp_queue *c = &peer->queue[i];
        if (c->kind == other && c->peer == role && c->channel == q->channel) return i;
    }
    return -1;
}

static void count_callers(hp_wiring *w, int32_t *room) {
    for (int r = 0; r < w->n_role; r++) {
        const hp_wired_role *role = &w->role[r];
        for (int q = 1; q < role->role->n_queue; q++) {
            if (role->role->queue[q].kind == HP_QUEUE_COLL) room[role->role->queue[q].peer]++;
        }
    }
}

static void wire_groups(hp_arena *arena, hp_wiring *w) {
    const int n_group = w->program->n_group;
    int32_t *room = HP_NEW(arena, int32_t, n_group);
    w->group = HP_NEW(arena, hp_wired_group, n_group);
    count_callers(w, room);
    for (int g = 0; g < n_group; g++) {
        w->group[g].role = HP_NEW(arena, int32_t, room[g]);
        w->group[g].queue = HP_NEW(arena, int32_t, room[g]);
    }
    for (int r = 0; r < w->n_role; r++) {
        const hp_wired_role *role = &w->role[r];
        for (int q = 1; q < role->role->n_queue; q++) {
            if (role->role->queue[q].kind != HP_QUEUE_COLL) continue;
            hp_wired_group *g = &w->group[role->role->queue[q].peer];
            g->role[g->n] = r;
            g->queue[g->n++] = q;
            if (role->queue[q].n > g->calls) g->calls = role->queue[q].n;
        }
    }
}

hp_wiring *hp_wiring_new(hp_arena *arena, const hp_program *p, bool fold) {
    hp_wiring *w = HP_NEW(arena, hp_wiring, 1);
    w->program = p;
    w->n_role = p->n_role;
    w->dp = fold ? 1 : p->dp;
    w->n_rank = w->dp * p->n_role;
    w->role = HP_NEW(arena, hp_wired_role, p->n_role);
    for (int r = 0; r < p->n_role; r++) {
        w->role[r].role = &p->role[r];
        wire_queues(arena, &w->role[r]);
        wire_successors(arena, &w->role[r]);
        for (int q = 0; q < p->role[r].n_queue; q++)
            w->role[r].queue[q].partner = find_partner(p, r, &p->role[r].queue[q]);
    }
    wire_groups(arena, w);
    return w;
}
