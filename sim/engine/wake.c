/* wake.c - what a rank learns at an instant: it has something to do, a part of a transfer to work on, or a
 * task that is done. */
#include "sim/engine/state.h"

void sim_push(sim *s, id_list *l, int32_t id) {
    if (l->first == l->n) l->first = l->n = 0;
    HP_ROOM(s->arena, l->id, l->n, l->capacity);
    l->id[l->n++] = id;
}

/* Parts that arrive at one instant are processed in list order. */
void sim_push_part(sim *s, int rank, int task) {
    rank_state *r = &s->rank[rank];
    if (r->parts.first == r->parts.n) r->parts.first = r->parts.n = 0;
    HP_ROOM(s->arena, r->parts.part, r->parts.n, r->parts.capacity);
    int at = r->parts.n++;
    for (; at > r->parts.first && r->parts.part[at - 1].since_ns == s->now_ns &&
           r->parts.part[at - 1].task > task;
         at--)
        r->parts.part[at] = r->parts.part[at - 1];
    r->parts.part[at] = (core_part){task, s->now_ns};
    sim_wake(s, rank);
}

void sim_wake(sim *s, int rank) {
    if (s->rank[rank].awake) return;
    s->rank[rank].awake = true;
    sim_push(s, &s->awake, rank);
}

/* Queues start their transfers in numerical order, whichever was ready first. */
static void push_starting(sim *s, rank_state *r, int queue) {
    sim_push(s, &r->starting, queue);
    int32_t *id = r->starting.id;
    for (int i = r->starting.n - 1; i > r->starting.first && id[i - 1] > id[i]; i--) {
        const int32_t before = id[i - 1];
        id[i - 1] = id[i];
        id[i] = before;
    }
}

void sim_complete(sim *s, int rank, int task) {
    rank_state *r = &s->rank[rank];
    const hp_wired_role *w = sim_role(s, rank);
    if (r->t1_ns) r->t1_ns[task] = s->now_ns;
    for (int i = w->succ_first[task]; i < w->succ_first[task + 1]; i++) {
        const int next = w->succ[i], queue = w->role->task[next].queue;
        if (hp_ready_meet(&r->ready, next) && queue != 0) push_starting(s, r, queue);
    }
    s->left--;
    sim_wake(s, rank);
}
