/* diagnosis.c - replays what each rank had done in its last step, and follows what the next task
 * lacks to the other end. */
#include "traces/faults/diagnosis.h"

#include "plan/program/wiring.h"

#include <string.h>

struct hp_diagnosis {
    const hp_program *p;
    hp_wiring *w;
    int32_t *iter; /* last step of each rank; -1: none */
    bool **done;   /* per rank and task, in that step */
};

hp_diagnosis *hp_diagnosis_new(hp_arena *arena, const hp_program *p) {
    const int n = hp_program_ranks(p);
    hp_diagnosis *d = HP_NEW(arena, hp_diagnosis, 1);
    *d = (hp_diagnosis){p, hp_wiring_new(arena, p), HP_NEW(arena, int32_t, n), HP_NEW(arena, bool *, n)};
    for (int r = 0; r < n; r++) {
        d->iter[r] = -1;
        d->done[r] = HP_NEW(arena, bool, p->role[r % p->n_role].n_task + 1);
    }
    return d;
}

static const hp_role *role_of(const hp_diagnosis *d, int rank) {
    return &d->p->role[rank % d->p->n_role];
}

void hp_diagnosis_done(hp_diagnosis *d, int rank, int32_t iter, int32_t task) {
    if (rank < 0 || rank >= hp_program_ranks(d->p) || iter < d->iter[rank] || iter < 0 || task < 0 ||
        task >= role_of(d, rank)->n_task)
        return;
    if (iter > d->iter[rank]) memset(d->done[rank], 0, sizeof(bool) * (size_t)role_of(d, rank)->n_task);
    d->iter[rank] = iter;
    d->done[rank][task] = true;
}

/* Has the rank done that task of a step? It has done all tasks of steps before its last one. */
static bool has_done(const hp_diagnosis *d, int rank, int32_t iter, int32_t task) {
    return d->iter[rank] > iter || (d->iter[rank] == iter && d->done[rank][task]);
}

/* Has the rank reached the task, with everything done that the task waits for? */
static bool has_come(const hp_diagnosis *d, int rank, int32_t iter, int32_t task) {
    const hp_role *r = role_of(d, rank);
    if (d->iter[rank] != iter) return d->iter[rank] > iter;
    for (int k = r->dep_first[task]; k < r->dep_first[task + 1]; k++)
        if (!d->done[rank][r->dep[k]]) return false;
    return true;
}

/* The first unfinished task of a queue; -1: all are done. */
static int head_of(const hp_diagnosis *d, int rank, int queue) {
    const hp_wired_queue *q = &d->w->role[rank % d->p->n_role].queue[queue];
    for (int k = 0; k < q->n; k++)
        if (!d->done[rank][q->task[k]]) return q->task[k];
    return -1;
}

static void wait_for(hp_stopped *s, int rank) {
    if (s->n_for < HP_STOP_NAMED) s->for_rank[s->n_for] = rank;
    s->n_for++;
}

/* Finds the members of a collective that have not reached it. */
static void absent_members(const hp_diagnosis *d, int rank, int task, int32_t iter, hp_stopped *s) {
    const hp_program *p = d->p;
    const int role = rank % p->n_role, replica = rank / p->n_role;
    const hp_queue *q = hp_wired_queue_of(&d->w->role[role], task);
    const int place = d->w->role[role].place[task];
    for (int k = 0; k < hp_group_size(p, q->peer); k++) {
        const int other = hp_group_rank(p, q->peer, replica, k);
        const hp_wired_role *theirs = &d->w->role[other % p->n_role];
        const int queue = hp_wired_find(theirs, HP_QUEUE_COLL, q->peer, q->channel);
        const int call = queue < 0 ? -1 : hp_wired_task(theirs, queue, place);
        if (other != rank && call >= 0 && !has_done(d, other, iter, call) && !has_come(d, other, iter, call))
            wait_for(s, other);
    }
}

/* Finds the ranks that keep this message or collective from completing. */
static void find_debtors(const hp_diagnosis *d, int rank, int task, int32_t iter, hp_stopped *s) {
    const int role = rank % d->p->n_role;
    const hp_queue *q = hp_wired_queue_of(&d->w->role[role], task);
    if (q->kind == HP_QUEUE_COLL) {
        absent_members(d, rank, task, iter, s);
        return;
    }
    const int other = rank - role + q->peer, end = hp_wired_other_end(d->w, role, task);
    if (end >= 0 && !has_done(d, other, iter, end) && !has_come(d, other, iter, end)) wait_for(s, other);
}

/* From a waiting task, goes back to a pending one that is not a compute task. Dependencies precede
 * a task in the list. */
static int under_way(const hp_diagnosis *d, int rank, int task) {
    const hp_role *r = role_of(d, rank);
    for (;;) {
        int lacks = -1;
        for (int k = r->dep_first[task]; k < r->dep_first[task + 1] && lacks < 0; k++)
            if (!d->done[rank][r->dep[k]]) lacks = r->dep[k];
        if (lacks < 0) return task;
        const int head = head_of(d, rank, r->task[lacks].queue); /* queues run in order */
        task = head >= 0 && head < lacks ? head : lacks;
        if (r->task[task].queue == 0) return task;
    }
}

static int count_done(const hp_diagnosis *d, int rank) {
    int n = 0;
    for (int t = 0; t < role_of(d, rank)->n_task; t++) n += d->done[rank][t];
    return n;
}

/* If all of a step is done, the rank is at the next one. */
static void go_on(hp_diagnosis *d, int rank) {
    const hp_role *r = role_of(d, rank);
    if (d->iter[rank] < 0 || count_done(d, rank) < r->n_task) return;
    d->iter[rank]++;
    memset(d->done[rank], 0, sizeof(bool) * (size_t)r->n_task);
}

static hp_stopped stopped_at(const hp_diagnosis *d, int rank) {
    hp_stopped s = {.kind = HP_STOP_UNKNOWN, .iter = d->iter[rank], .task = -1};
    const hp_role *r = role_of(d, rank);
    if (s.iter < 0) return s;
    int task = head_of(d, rank, 0);
    for (int q = 1; q < r->n_queue && task < 0; q++) task = head_of(d, rank, q);
    s.task = under_way(d, rank, task);
    s.kind = r->task[s.task].queue > 0  ? HP_STOP_WAITS
             : count_done(d, rank) == 0 ? HP_STOP_BETWEEN
                                        : HP_STOP_COMPUTES;
    if (s.kind == HP_STOP_WAITS) find_debtors(d, rank, s.task, s.iter, &s);
    return s;
}

void hp_diagnosis_conclude(hp_diagnosis *d, hp_stopped *stopped) {
    for (int r = 0; r < hp_program_ranks(d->p); r++) go_on(d, r);
    for (int r = 0; r < hp_program_ranks(d->p); r++) stopped[r] = stopped_at(d, r);
}

int hp_diagnosis_culprit(const hp_diagnosis *d, const hp_stopped *stopped) {
    int culprit = -1;
    for (int r = 0; r < hp_program_ranks(d->p); r++) {
        const hp_stopped *s = &stopped[r];
        if (s->kind != HP_STOP_WAITS) continue;
        if (s->n_for == 0) return -1;
        for (int k = 0; k < s->n_for && k < HP_STOP_NAMED; k++) {
            const int other = s->for_rank[k];
            if (stopped[other].kind == HP_STOP_WAITS) continue;
            const bool known =
                stopped[other].kind == HP_STOP_COMPUTES; /* between steps ranks wait for each other, too */
            if (!known || (culprit >= 0 && culprit != other)) return -1;
            culprit = other;
        }
    }
    return culprit;
}
