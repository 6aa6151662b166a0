/* waits.c - can every task start? The wait-for graph over all ranks of one replica, sends synchronous.
 *
 * Each task has two events, posted and done. A compute task is posted when the one before it is done; a send,
 * receive or collective when the one before it in its queue is posted. A synchronous send is done only once
 * its receive is posted, a collective once all members have posted it. What cannot happen although everything
 * possible has happened waits in a circle. Replicas run the same lists, so one replica stands for all.
 *
 * Linear in tasks and dependencies: the search for the fastest plan asks this for every candidate. */
#include "plan/check/check.h"

#include <string.h>

typedef struct waits {
    hp_arena *arena;
    const hp_program *p;
    const hp_queue_list *lists;
    int n_task;
    int32_t *base;    /* per role: number of its first task, counted over roles; n_role + 1 entries */
    int32_t *role;    /* per task, numbered so */
    int32_t *before;  /* per task: dependencies, and the one before it in its queue, that have not happened */
    int32_t *next;    /* per task: the one behind it in its queue, -1 */
    int32_t *partner; /* per task: other end of the message, meeting of a collective, -1 */
    int32_t *succ_first, *succ;              /* per task: tasks that depend on it */
    uint8_t *state;                          /* per task: POSTED | DONE */
    int32_t n_instance, *missing;            /* per meeting: calls that have not been posted */
    int32_t *instance_first, *instance_call; /* per meeting: its calls */
    int32_t *ready, n_ready; /* tasks that are posted or done, and whose consequences are to be drawn */
} waits;

enum { POSTED = 1, DONE = 2 };

static const hp_task *task_of(const waits *w, int t) {
    const int role = w->role[t];
    return &w->p->role[role].task[t - w->base[role]];
}

static int kind_of(const waits *w, int t) {
    return hp_task_infos[task_of(w, t)->op].queue;
}

/* --- the graph --- */

static void number_tasks(waits *w) {
    w->base = HP_NEW(w->arena, int32_t, w->p->n_role + 1);
    for (int r = 0; r < w->p->n_role; r++) w->base[r + 1] = w->base[r] + w->p->role[r].n_task;
    w->n_task = w->base[w->p->n_role];
    w->role = HP_NEW(w->arena, int32_t, w->n_task);
    for (int r = 0; r < w->p->n_role; r++)
        for (int t = w->base[r]; t < w->base[r + 1]; t++) w->role[t] = r;
}

/* Dependencies turned round, and the order of the queues. */
static void link_role(waits *w, int role) {
    const hp_role *r = &w->p->role[role];
    const hp_queue_list *l = &w->lists[role];
    const int base = w->base[role];
    for (int q = 0; q < r->n_queue; q++)
        for (int i = l->first[q]; i + 1 < l->first[q + 1]; i++) {
            w->next[base + l->task[i]] = base + l->task[i + 1];
            w->before[base + l->task[i + 1]]++;
        }
    for (int t = 0; t < r->n_task; t++)
        for (int i = r->dep_first[t]; i < r->dep_first[t + 1]; i++) {
            w->before[base + t]++;
            w->succ[w->succ_first[base + r->dep[i]]++] = base + t;
        }
}

static void count_successors(waits *w) {
    int64_t n_dep = 0;
    w->succ_first = HP_NEW(w->arena, int32_t, w->n_task + 2);
    for (int role = 0; role < w->p->n_role; role++) {
        const hp_role *r = &w->p->role[role];
        for (int i = 0; i < r->n_dep; i++) w->succ_first[w->base[role] + r->dep[i] + 1]++;
        n_dep += r->n_dep;
    }
    for (int t = 0; t < w->n_task; t++) w->succ_first[t + 1] += w->succ_first[t];
    w->succ = HP_NEW(w->arena, int32_t, n_dep);
}

static void link_tasks(waits *w) {
    w->before = HP_NEW(w->arena, int32_t, w->n_task);
    w->next = HP_NEW(w->arena, int32_t, w->n_task);
    w->partner = HP_NEW(w->arena, int32_t, w->n_task);
    memset(w->next, -1, sizeof(int32_t) * (size_t)w->n_task);
    memset(w->partner, -1, sizeof(int32_t) * (size_t)w->n_task);
    count_successors(w);
    for (int r = 0; r < w->p->n_role; r++) link_role(w, r);
    memmove(w->succ_first + 1, w->succ_first,
            sizeof(int32_t) * (size_t)w->n_task); /* filling moved each on */
    w->succ_first[0] = 0;
}

/* The k-th send of a channel is received by the k-th receive at its other end. */
static void link_channel(waits *w, int role, int q) {
    const hp_queue *queue = &w->p->role[role].queue[q];
    const hp_queue_list *a = &w->lists[role], *b = &w->lists[queue->peer];
    const int back = hp_queue_find(&w->p->role[queue->peer], b, HP_QUEUE_RECV, role, queue->channel);
    if (back < 0) return;
    for (int i = a->first[q], j = b->first[back]; i < a->first[q + 1] && j < b->first[back + 1]; i++, j++) {
        const int send = w->base[role] + a->task[i], recv = w->base[queue->peer] + b->task[j];
        w->partner[send] = recv;
        w->partner[recv] = send;
    }
}

/* The k-th call of every member of a group is one meeting. */
static void link_call(waits *w, const int32_t *group_first, int role, int q) {
    const hp_queue_list *l = &w->lists[role];
    const int first = group_first[w->p->role[role].queue[q].peer];
    for (int k = 0; k < l->first[q + 1] - l->first[q]; k++) {
        w->partner[w->base[role] + l->task[l->first[q] + k]] = first + k;
        w->missing[first + k]++;
    }
}

/* Meetings of each group: as many as the member that calls most has calls. */
static int32_t *count_instances(waits *w) {
    int32_t *first = HP_NEW(w->arena, int32_t, w->p->n_group + 1);
    for (int role = 0; role < w->p->n_role; role++)
        for (int q = 1; q < w->p->role[role].n_queue; q++) {
            const hp_queue *queue = &w->p->role[role].queue[q];
            const int n = w->lists[role].first[q + 1] - w->lists[role].first[q];
            if (queue->kind == HP_QUEUE_COLL && n > first[queue->peer + 1]) first[queue->peer + 1] = n;
        }
    for (int i = 0; i < w->p->n_group; i++) first[i + 1] += first[i];
    w->n_instance = first[w->p->n_group];
    return first;
}

static void list_calls(waits *w) {
    w->instance_first = HP_NEW(w->arena, int32_t, w->n_instance + 1);
    for (int i = 0; i < w->n_instance; i++) w->instance_first[i + 1] = w->instance_first[i] + w->missing[i];
    w->instance_call = HP_NEW(w->arena, int32_t, w->instance_first[w->n_instance]);
    int32_t *at = HP_NEW(w->arena, int32_t, w->n_instance);
    for (int t = 0; t < w->n_task; t++)
        if (kind_of(w, t) == HP_QUEUE_COLL)
            w->instance_call[w->instance_first[w->partner[t]] + at[w->partner[t]]++] = t;
}

static void link_ranks(waits *w) {
    const int32_t *group_first = count_instances(w);
    w->missing = HP_NEW(w->arena, int32_t, w->n_instance);
    for (int role = 0; role < w->p->n_role; role++)
        for (int q = 1; q < w->p->role[role].n_queue; q++) {
            const int kind = w->p->role[role].queue[q].kind;
            if (kind == HP_QUEUE_SEND) link_channel(w, role, q);
            if (kind == HP_QUEUE_COLL) link_call(w, group_first, role, q);
        }
    list_calls(w);
}

/* --- everything possible happens --- */

static void release(waits *w, int t) {
    if (t >= 0 && --w->before[t] == 0) w->ready[w->n_ready++] = t;
}

static void finish(waits *w, int t) {
    w->state[t] |= DONE;
    for (int i = w->succ_first[t]; i < w->succ_first[t + 1]; i++) release(w, w->succ[i]);
}

/* A message without another end is nobody's wait: check/messages.c refuses it. */
static void post_message(waits *w, int t) {
    const int other = w->partner[t];
    if (other >= 0 && !(w->state[other] & POSTED)) return;
    finish(w, t);
    if (other >= 0) finish(w, other);
}

static void post_call(waits *w, int t) {
    const int instance = w->partner[t];
    if (--w->missing[instance] > 0) return;
    for (int i = w->instance_first[instance]; i < w->instance_first[instance + 1]; i++)
        finish(w, w->instance_call[i]);
}

static void post(waits *w, int t) {
    const int kind = kind_of(w, t);
    w->state[t] |= POSTED;
    if (kind == HP_QUEUE_COMPUTE) finish(w, t);
    if (kind == HP_QUEUE_SEND || kind == HP_QUEUE_RECV) post_message(w, t);
    if (kind == HP_QUEUE_COLL) post_call(w, t);
    release(w, w->next[t]); /* a compute task is done as soon as it is posted */
}

/* Returns a task that cannot be done, or -1. */
static int run(waits *w) {
    w->state = HP_NEW(w->arena, uint8_t, w->n_task);
    w->ready = HP_NEW(w->arena, int32_t, w->n_task);
    for (int t = 0; t < w->n_task; t++)
        if (w->before[t] == 0) w->ready[w->n_ready++] = t;
    for (int i = 0; i < w->n_ready; i++) post(w, w->ready[i]);
    for (int t = 0; t < w->n_task; t++)
        if (!(w->state[t] & DONE)) return t;
    return -1;
}

/* --- the circle --- */

static int before_in_queue(const waits *w, int t) {
    const int queue = task_of(w, t)->queue;
    int b = t - 1;
    while (b >= w->base[w->role[t]] && task_of(w, b)->queue != queue) b--;
    return b >= w->base[w->role[t]] ? b : -1;
}

/* A task whose being posted or done the blocked task waits for. */
static int waits_for(const waits *w, int t) {
    if (w->state[t] & POSTED) { /* the other side is missing */
        const int instance = w->partner[t];
        if (kind_of(w, t) != HP_QUEUE_COLL) return instance;
        int i = w->instance_first[instance];
        while (w->state[w->instance_call[i]] & POSTED) i++;
        return w->instance_call[i];
    }
    const hp_role *r = &w->p->role[w->role[t]];
    const int base = w->base[w->role[t]];
    for (int i = r->dep_first[t - base]; i < r->dep_first[t - base + 1]; i++)
        if (!(w->state[base + r->dep[i]] & DONE)) return base + r->dep[i];
    return before_in_queue(w, t);
}

typedef struct circle {
    char ranks[200], tasks[600];
    int n_rank;
    bool *named; /* per role */
} circle;

static void name_task(const waits *w, const hp_graph *g, int t, circle *c) {
    char label[200];
    const int role = w->role[t];
    if (!c->named[role]) {
        const size_t have = strlen(c->ranks);
        if (have < sizeof c->ranks - 8)
            snprintf(c->ranks + have, sizeof c->ranks - have, "%s%d", c->n_rank ? ", " : "", role);
        c->named[role] = true;
        c->n_rank++;
    }
    const size_t have = strlen(c->tasks);
    if (have < 400)
        snprintf(c->tasks + have, sizeof c->tasks - have, "%srank %d: %s", have ? " <- " : "", role,
                 hp_task_label(w->p, g, &w->p->role[role], t - w->base[role], label, sizeof label));
}

/* Follows the waits from a blocked task until one comes again: from there on it is the circle. */
static hp_status describe_circle(const waits *w, const hp_graph *g, int blocked, hp_error *err) {
    bool *seen = HP_NEW(w->arena, bool, w->n_task);
    circle c = {.named = HP_NEW(w->arena, bool, w->p->n_role)};
    int t = blocked;
    for (; !seen[t]; t = waits_for(w, t)) seen[t] = true;
    const int start = t;
    do {
        name_task(w, g, t, &c);
        t = waits_for(w, t);
    } while (t != start);
    if (c.n_rank < 2)
        return hp_fail(err, HP_EPLAN, "E-CYCLE: rank %s waits for itself: %s", c.ranks, c.tasks);
    return hp_fail(err, HP_EPLAN, "E-DEADLOCK: ranks %s wait for each other: %s", c.ranks, c.tasks);
}

hp_status hp_check_waits(const hp_program *p, const hp_graph *g, hp_error *err) {
    waits w = {.arena = hp_arena_new(), .p = p};
    w.lists = hp_queue_lists(w.arena, p);
    number_tasks(&w);
    link_tasks(&w);
    link_ranks(&w);
    const int blocked = run(&w);
    const hp_status s = blocked < 0 ? HP_OK : describe_circle(&w, g, blocked, err);
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
