/* check_waits.c - can every task start? The wait-for graph over all ranks of one replica, sends synchronous.
 *
 * Each task has two events, posted and done. A compute task is posted when the one before it is done; a send,
 * receive or collective when the one before it in its queue is posted. A synchronous send is done only once
 * its receive is posted, a collective once all members have posted it. A cycle means that some ranks wait for
 * each other for ever. Replicas run the same lists, so one replica stands for all. */
#include "plan/program_check.h"

#include <string.h>

typedef struct waits {
    hp_arena *arena;
    const hp_program *p;
    int *base; /* per role: number of its first task, counted over roles */
    int n_task, n_node, n_edge, edge_room;
    int (*edge)[2];
} waits;

static int posted(const waits *w, int role, int task) {
    return 2 * (w->base[role] + task);
}

static int done(const waits *w, int role, int task) {
    return posted(w, role, task) + 1;
}

static void add_edge(waits *w, int from, int to) {
    HP_ROOM(w->arena, w->edge, w->n_edge, w->edge_room);
    w->edge[w->n_edge][0] = from;
    w->edge[w->n_edge][1] = to;
    w->n_edge++;
}

static void add_role(waits *w, int role) {
    const hp_role *r = &w->p->role[role];
    int *last = HP_NEW(w->arena, int, r->n_queue);
    memset(last, -1, sizeof(int) * (size_t)r->n_queue);
    for (int t = 0; t < r->n_task; t++) {
        const int q = r->task[t].queue;
        add_edge(w, posted(w, role, t), done(w, role, t));
        for (int i = r->dep_first[t]; i < r->dep_first[t + 1]; i++)
            add_edge(w, done(w, role, r->dep[i]), posted(w, role, t));
        if (last[q] >= 0)
            add_edge(w, q == 0 ? done(w, role, last[q]) : posted(w, role, last[q]), posted(w, role, t));
        last[q] = t;
    }
}

/* Tasks of queue q in order. */
static int *queue_tasks(waits *w, int role, int q, int *n) {
    const hp_role *r = &w->p->role[role];
    int *list = HP_NEW(w->arena, int, r->n_task);
    *n = 0;
    for (int t = 0; t < r->n_task; t++)
        if (r->task[t].queue == q) list[(*n)++] = t;
    return list;
}

static void add_channel(waits *w, int role, int q) {
    const hp_queue *send = &w->p->role[role].queue[q];
    const hp_role *peer = &w->p->role[send->peer];
    int n = 0, m = 0;
    const int *sends = queue_tasks(w, role, q, &n);
    for (int back = 1; back < peer->n_queue; back++) {
        const hp_queue *recv = &peer->queue[back];
        if (recv->kind != HP_QUEUE_RECV || recv->peer != role || recv->channel != send->channel) continue;
        const int *recvs = queue_tasks(w, send->peer, back, &m);
        for (int k = 0; k < n && k < m; k++) {
            add_edge(w, posted(w, send->peer, recvs[k]), done(w, role, sends[k]));
            add_edge(w, posted(w, role, sends[k]), done(w, send->peer, recvs[k]));
        }
    }
}

/* The k-th collective over all ranks is one more event: all have posted it. */
static void add_world(waits *w, int role, int q) {
    int n = 0;
    const int *calls = queue_tasks(w, role, q, &n);
    for (int k = 0; k < n; k++) {
        const int met = 2 * w->n_task + k;
        if (met >= w->n_node) w->n_node = met + 1;
        add_edge(w, posted(w, role, calls[k]), met);
        add_edge(w, met, done(w, role, calls[k]));
    }
}

static void add_queues(waits *w) {
    w->n_node = 2 * w->n_task;
    for (int role = 0; role < w->p->n_role; role++) {
        const hp_role *r = &w->p->role[role];
        add_role(w, role);
        for (int q = 1; q < r->n_queue; q++) {
            if (r->queue[q].kind == HP_QUEUE_SEND) add_channel(w, role, q);
            if (r->queue[q].kind == HP_QUEUE_COLL && r->queue[q].peer == 0)
                add_world(w, role, q);
        }
    }
}

/* Removes every event that can happen; left[v] is then the number of events v still waits for. Returns how
 * many remain. */
static int remove_possible(waits *w, int *left) {
    int *first = HP_NEW(w->arena, int, w->n_node + 2), *next = HP_NEW(w->arena, int, w->n_edge + 1);
    int *ready = HP_NEW(w->arena, int, w->n_node + 1);
    int n_ready = 0, removed = 0;
    memset(first, -1, sizeof(int) * (size_t)w->n_node);
    for (int e = 0; e < w->n_edge; e++) {
        next[e] = first[w->edge[e][0]];
        first[w->edge[e][0]] = e;
        left[w->edge[e][1]]++;
    }
    for (int v = 0; v < w->n_node; v++)
        if (!left[v]) ready[n_ready++] = v;
    while (removed < n_ready) {
        const int v = ready[removed++];
        for (int e = first[v]; e >= 0; e = next[e])
            if (--left[w->edge[e][1]] == 0) ready[n_ready++] = w->edge[e][1];
    }
    return w->n_node - removed;
}

static int role_of(const waits *w, int node) {
    int role = w->p->n_role - 1;
    while (role > 0 && w->base[role] > node / 2) role--;
    return role;
}

/* Walks backwards along blocked events until one repeats: that is the cycle. Describes it in `err`. */
static hp_status describe_cycle(const waits *w, const hp_graph *g, const int *left, hp_error *err) {
    int *before = HP_NEW(w->arena, int, w->n_node), *seen = HP_NEW(w->arena, int, w->n_node);
    for (int e = 0; e < w->n_edge; e++)
        if (left[w->edge[e][0]] && left[w->edge[e][1]]) before[w->edge[e][1]] = w->edge[e][0];
    int v = 0;
    while (!left[v]) v++;
    while (!seen[v]) {
        seen[v] = 1;
        v = before[v];
    }
    char ranks[200] = "", tasks[600] = "", label[200];
    bool named[HP_MAX_STAGES] = {false};
    int n_ranks = 0, last_task = -1;
    const int start = v;
    do {
        if (v < 2 * w->n_task) {
            const int role = role_of(w, v), task = v / 2 - w->base[role];
            if (!named[role]) {
                snprintf(ranks + strlen(ranks), sizeof ranks - strlen(ranks), "%s%d", n_ranks ? ", " : "",
                         role);
                named[role] = true;
                n_ranks++;
            }
            if (v / 2 != last_task && strlen(tasks) < 400)
                snprintf(tasks + strlen(tasks), sizeof tasks - strlen(tasks), "%srank %d: %s",
                         tasks[0] ? " <- " : "", role,
                         hp_task_label(w->p, g, &w->p->role[role], task, label, sizeof label));
            last_task = v / 2;
        }
        v = before[v];
    } while (v != start);
    if (n_ranks < 2) return hp_fail(err, HP_EPLAN, "E-CYCLE: rank %s waits for itself: %s", ranks, tasks);
    return hp_fail(err, HP_EPLAN, "E-DEADLOCK: ranks %s wait for each other: %s", ranks, tasks);
}

hp_status hp_check_waits(const hp_program *p, const hp_graph *g, hp_error *err) {
    waits w = {.arena = hp_arena_new(), .p = p};
    w.base = HP_NEW(w.arena, int, p->n_role);
    for (int role = 0; role < p->n_role; role++) {
        w.base[role] = w.n_task;
        w.n_task += p->role[role].n_task;
    }
    add_queues(&w);
    int *left = HP_NEW(w.arena, int, w.n_node + 1);
    const hp_status s = remove_possible(&w, left) ? describe_cycle(&w, g, left, err) : HP_OK;
    hp_arena_free(w.arena);
    return s;
}

/* Naive programs: every call returns before the next one starts. */
hp_program *hp_program_blocking(hp_arena *arena, const hp_program *p) {
    hp_program *out = HP_NEW(arena, hp_program, 1);
    *out = *p;
    out->role = HP_NEW(arena, hp_role, p->n_role);
    for (int s = 0; s < p->n_role; s++) {
        const hp_role *from = &p->role[s];
        hp_role *to = &out->role[s];
        *to = *from;
        to->dep_first = HP_NEW(arena, int32_t, from->n_task + 1);
        to->dep = HP_NEW(arena, int32_t, from->n_dep + from->n_task);
        to->n_dep = 0;
        for (int t = 0; t < from->n_task; t++) {
            to->dep_first[t] = to->n_dep;
            if (t) to->dep[to->n_dep++] = t - 1;
            for (int i = from->dep_first[t]; i < from->dep_first[t + 1]; i++)
                to->dep[to->n_dep++] = from->dep[i];
        }
        to->dep_first[from->n_task] = to->n_dep;
    }
    return out;
}
