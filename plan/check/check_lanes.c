/* check_lanes.c - messages that run as device work form the same groups in every run, and every group
 * completes. See lanes.h.
 *
 * Both ends of a message, and all members of a collective, name one back end. On each rank and stream,
 * consecutive tasks with the same dependencies form a group; each task depends on all of the previous group.
 * A group completes as a whole, so waiting for one member means waiting for all. Under that rule, ranks must
 * not wait for each other in a cycle. Messages between a pair are issued in the same order on both ends. */
#include "plan/program/lanes.h"

#include "plan/check/check_inside.h"
#include "plan/program/print.h"

#include <stdlib.h>
#include <string.h>

#define REFUSE(...) return hp_fail(err, HP_EPLAN, __VA_ARGS__)

/* Tasks of a stream, in order. */
typedef struct stream_tasks {
    int32_t n, *task;
    int32_t *begin, *end; /* per place: bounds of its group */
} stream_tasks;

typedef struct lanes_check {
    hp_arena *arena;
    const hp_program *p;
    const hp_graph *g;
    const hp_wiring *w;
    stream_tasks (*of)[HP_LANE_STREAMS]; /* per role */
} lanes_check;

/* --- back ends --- */

static hp_status check_ends(const lanes_check *c, int role, int q, hp_error *err) {
    const hp_queue *a = &c->p->role[role].queue[q];
    const int other = c->w->role[role].queue[q].partner;
    if (other < 0) return HP_OK; /* check/check_messages.c: nothing moves there */
    const hp_queue *b = &c->p->role[a->peer].queue[other];
    if (a->backend != b->backend)
        REFUSE("E-LANE: channel %d between ranks %d and %d: one end is %s's, the other %s's", a->channel,
               role, a->peer, hp_backend_names[a->backend], hp_backend_names[b->backend]);
    return HP_OK;
}

static hp_status check_member(const lanes_check *c, int role, int q, int32_t *backend, hp_error *err) {
    const hp_queue *queue = &c->p->role[role].queue[q];
    if (c->w->role[role].queue[q].n == 0) return HP_OK;
    if (backend[queue->peer] < 0) backend[queue->peer] = queue->backend;
    if (backend[queue->peer] != queue->backend)
        REFUSE("E-LANE: group %d: rank %d calls %s's collectives, other members %s's", queue->peer, role,
               hp_backend_names[queue->backend], hp_backend_names[backend[queue->peer]]);
    return HP_OK;
}

static hp_status check_backends(const lanes_check *c, hp_error *err) {
    int32_t *backend = HP_NEW(c->arena, int32_t, c->p->n_group);
    memset(backend, -1, sizeof *backend * (size_t)c->p->n_group);
    for (int role = 0; role < c->p->n_role; role++)
        for (int q = 1; q < c->p->role[role].n_queue; q++) {
            const bool coll = c->p->role[role].queue[q].kind == HP_QUEUE_COLL;
            HP_TRY(coll ? check_member(c, role, q, backend, err) : check_ends(c, role, q, err));
        }
    return HP_OK;
}

/* --- groups --- */

static int n_deps(const hp_role *r, int t) {
    return r->dep_first[t + 1] - r->dep_first[t];
}

static bool same_deps(const hp_role *r, int a, int b) {
    return n_deps(r, a) == n_deps(r, b) && memcmp(r->dep + r->dep_first[a], r->dep + r->dep_first[b],
                                                  sizeof *r->dep * (size_t)n_deps(r, a)) == 0;
}

static bool depends(const hp_role *r, int t, int on) {
    for (int i = r->dep_first[t]; i < r->dep_first[t + 1]; i++)
        if (r->dep[i] == on) return true;
    return false;
}

static stream_tasks group_stream(const lanes_check *c, int role, int stream) {
    const hp_role *r = &c->p->role[role];
    stream_tasks s = {0};
    int32_t **per_place[] = {&s.task, &s.begin, &s.end};
    for (int i = 0; i < 3; i++) *per_place[i] = HP_NEW(c->arena, int32_t, r->n_task);
    for (int t = 0; t < r->n_task; t++) {
        if (hp_lane_stream_of(&r->queue[r->task[t].queue]) != stream) continue;
        const bool joins = s.n && same_deps(r, s.task[s.n - 1], t);
        s.begin[s.n] = joins ? s.begin[s.n - 1] : s.n;
        s.task[s.n++] = t;
    }
    for (int i = s.n - 1; i >= 0; i--)
        s.end[i] = i + 1 < s.n && s.begin[i + 1] == s.begin[i] ? s.end[i + 1] : i + 1;
    return s;
}

static hp_status check_follows(const lanes_check *c, int role, const stream_tasks *s, int place,
                               hp_error *err) {
    const hp_role *r = &c->p->role[role];
    const int begin = s->begin[place], task = s->task[place];
    char a[200], b[200];
    for (int i = begin ? s->begin[begin - 1] : begin; i < begin; i++)
        if (!depends(r, task, s->task[i]))
            REFUSE("E-LANE: rank %d: task %d (%s) does not wait for task %d (%s), which its stream has "
                   "before it: "
                   "they may or may not move together",
                   role, task, hp_task_label(c->p, c->g, r, task, a, sizeof a), s->task[i],
                   hp_task_label(c->p, c->g, r, s->task[i], b, sizeof b));
    return HP_OK;
}

static hp_status check_stream(const lanes_check *c, int role, int stream, hp_error *err) {
    const stream_tasks s = c->of[role][stream] = group_stream(c, role, stream);
    for (int i = 0; i < s.n; i++) {
        if (stream == HP_LANE_SUMS && s.begin[i] != i)
            REFUSE("E-LANE: rank %d: collectives %d and %d may start together, in an order that is open",
                   role, s.task[i - 1], s.task[i]);
        HP_TRY(check_follows(c, role, &s, i, err));
    }
    return HP_OK;
}

/* --- order within a pair --- */

/* A message in the order the executor issues it: by group, then by queue, then by position in the queue. */
typedef struct given {
    int32_t kind, peer, group, queue, task, channel;
} given;

static int by_giving(const void *a, const void *b) {
    const int32_t *x = a, *y = b; /* compares the fields in their order */
    int i = 0;
    while (i < 4 && x[i] == y[i]) i++;
    return x[i] < y[i] ? -1 : x[i] > y[i];
}

static given *list_given(const lanes_check *c, int role) {
    const hp_role *r = &c->p->role[role];
    const stream_tasks *s = &c->of[role][HP_LANE_MESSAGES];
    given *list = HP_NEW(c->arena, given, s->n + 1);
    for (int i = 0; i < s->n; i++) {
        const int q = r->task[s->task[i]].queue;
        list[i] =
            (given){r->queue[q].kind, r->queue[q].peer, s->begin[i], q, s->task[i], r->queue[q].channel};
    }
    qsort(list, (size_t)s->n, sizeof *list, by_giving);
    return list;
}

/* Index of the first message of `kind` with `peer`. */
static int find_given(const given *list, int n, int kind, int peer) {
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (list[middle].kind < kind || (list[middle].kind == kind && list[middle].peer < peer))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static hp_status check_pairs(const lanes_check *c, hp_error *err) {
    const hp_program *p = c->p;
    given **list = HP_NEW(c->arena, given *, p->n_role);
    for (int r = 0; r < p->n_role; r++) list[r] = list_given(c, r);
    for (int from = 0; from < p->n_role; from++)
        for (int i = 0, k = 0, to = -1; i < c->of[from][HP_LANE_MESSAGES].n; i++, k++) {
            const given *a = &list[from][i];
            if (a->kind != HP_QUEUE_SEND) break; /* receives come after */
            if (a->peer != to)
                k = find_given(list[a->peer], c->of[a->peer][HP_LANE_MESSAGES].n, HP_QUEUE_RECV, from);
            to = a->peer;
            const given *b = &list[to][k];
            const bool there =
                k < c->of[to][HP_LANE_MESSAGES].n && b->kind == HP_QUEUE_RECV && b->peer == from;
            if (!there || b->channel != a->channel)
                REFUSE(
                    "E-LANE: ranks %d and %d give their messages in different orders: task %d of channel %d "
                    "meets another",
                    from, to, a->task, a->channel);
        }
    return HP_OK;
}

/* --- progress --- */

typedef struct widening {
    hp_role *to;
    int32_t *place; /* per task: its place on its stream; -1: none */
    int room;
} widening;

static void wait_for_group(const lanes_check *c, widening *w, const hp_role *r, const stream_tasks *streams,
                           int on) {
    const int stream = hp_lane_stream_of(&r->queue[r->task[on].queue]);
    const stream_tasks *s = stream < 0 ? NULL : &streams[stream];
    const int from = s ? s->begin[w->place[on]] : 0, end = s ? s->end[from] : 1;
    for (int i = from; i < end; i++) {
        HP_ROOM(c->arena, w->to->dep, w->to->n_dep, w->room);
        w->to->dep[w->to->n_dep++] = s ? s->task[i] : on;
    }
}

/* A task that depends on a group waits only for the first of its members in the dependency list; once is
 * enough. */
static bool is_again(const hp_role *r, const stream_tasks *streams, const int32_t *place, int first, int i) {
    const int stream = hp_lane_stream_of(&r->queue[r->task[r->dep[i]].queue]);
    if (stream < 0 || i == first) return false;
    const int before = hp_lane_stream_of(&r->queue[r->task[r->dep[i - 1]].queue]);
    return before == stream &&
           streams[stream].begin[place[r->dep[i]]] == streams[stream].begin[place[r->dep[i - 1]]];
}

static void widen_role(const lanes_check *c, int role, hp_role *to) {
    const hp_role *r = &c->p->role[role];
    const stream_tasks *streams = c->of[role];
    widening w = {.to = to, .place = HP_NEW(c->arena, int32_t, r->n_task)};
    for (int s = 0; s < HP_LANE_STREAMS; s++)
        for (int i = 0; i < streams[s].n; i++) w.place[streams[s].task[i]] = i;
    to->dep_first = HP_NEW(c->arena, int32_t, r->n_task + 1);
    to->dep = NULL;
    to->n_dep = 0;
    for (int t = 0; t < r->n_task; t++) {
        to->dep_first[t] = to->n_dep;
        for (int i = r->dep_first[t]; i < r->dep_first[t + 1]; i++)
            if (!is_again(r, streams, w.place, r->dep_first[t], i))
                wait_for_group(c, &w, r, streams, r->dep[i]);
    }
    to->dep_first[r->n_task] = to->n_dep;
}

static hp_status check_progress(const lanes_check *c, hp_error *err) {
    hp_program wide = *c->p;
    wide.role = HP_NEW(c->arena, hp_role, c->p->n_role);
    for (int r = 0; r < c->p->n_role; r++) {
        wide.role[r] = c->p->role[r];
        widen_role(c, r, &wide.role[r]);
    }
    return hp_check_waits(hp_wiring_new(c->arena, &wide), c->g, err);
}

hp_status hp_check_lanes(hp_arena *arena, const hp_wiring *w, const hp_graph *g, hp_error *err) {
    const hp_program *p = w->program;
    lanes_check c = {.arena = arena, .p = p, .g = g, .w = w};
    HP_TRY(check_backends(&c, err));
    if (!hp_has_lanes(p)) return HP_OK;
    c.of = hp_arena_alloc(arena, sizeof *c.of * (size_t)p->n_role);
    for (int r = 0; r < p->n_role; r++)
        for (int s = 0; s < HP_LANE_STREAMS; s++) HP_TRY(check_stream(&c, r, s, err));
    HP_TRY(check_pairs(&c, err));
    return check_progress(&c, err);
}
