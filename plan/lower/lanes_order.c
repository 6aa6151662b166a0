/* lanes_order.c - one order for the tasks of all ranks of a replica: list scheduling on a clock without a
 * machine, both ends of a message and all calls of a collective being one point of it.
 *
 * A task takes the time of its arithmetic and its memory traffic, as if every rank had the same processor.
 * What is not NCCL's comes as soon as it may. Of NCCL's points that may come when nothing else is left, the
 * earliest is next: a stream is serial, so a message that comes too early in it holds up those behind it.
 * With a message come the others of its exchange: of the same tensor between the parts of a stage, of the
 * same micro-batch between two stages. */
#include "plan/lower/lanes_order.h"

#include "plan/check/check.h"

#include <string.h>

typedef struct points {
    int32_t n, first, *point; /* first: not yet taken from the front */
} points;

/* What moves together. */
typedef struct exchange {
    int32_t channel, micro, tag; /* tag -1: all of the micro-batch */
} exchange;

typedef struct joint {
    hp_arena *arena;
    const hp_program *p;
    const hp_graph *g;
    const hp_queue_list *lists;
    int32_t n_task, *base; /* base: per role, its first task's number over all roles */
    int32_t *role;         /* per task, numbered so */
    int32_t *point;        /* per task: the first task of its point */
    int32_t *peer;         /* per task: the next task of its point, -1 */
    int32_t *before;       /* per point: dependencies and tasks ahead in queues that are still to come */
    int32_t *next;         /* per task: the one behind it in its queue, -1 */
    int32_t *succ_first, *succ;
    double *since;         /* per point: when all that it has waited for so far was done */
    double *busy;          /* per role and stream: until when */
    points ready, waiting; /* waiting: NCCL's that may come */
    int32_t n_lane, left;
    hp_lane_order *order;
} joint;

/* --- points --- */

static void number_tasks(joint *j) {
    j->base = HP_NEW(j->arena, int32_t, j->p->n_role + 1);
    for (int r = 0; r < j->p->n_role; r++) j->base[r + 1] = j->base[r] + j->p->role[r].n_task;
    j->left = j->n_task = j->base[j->p->n_role];
    int32_t **per_task[] = {&j->role, &j->point, &j->peer, &j->before, &j->next};
    for (int i = 0; i < 5; i++) *per_task[i] = HP_NEW(j->arena, int32_t, j->n_task);
    for (int r = 0; r < j->p->n_role; r++)
        for (int t = j->base[r]; t < j->base[r + 1]; t++) {
            j->role[t] = r;
            j->point[t] = t;
            j->peer[t] = j->next[t] = -1;
        }
}

/* The k-th send of a channel is received by the k-th receive at its other end. */
static void join_messages(joint *j, int role, int q) {
    const hp_queue *queue = &j->p->role[role].queue[q];
    const hp_queue_list *a = &j->lists[role], *b = &j->lists[queue->peer];
    const int back = hp_queue_find(&j->p->role[queue->peer], b, HP_QUEUE_RECV, role, queue->channel);
    if (back < 0) return;
    for (int i = a->first[q], k = b->first[back]; i < a->first[q + 1] && k < b->first[back + 1]; i++, k++) {
        const int send = j->base[role] + a->task[i], recv = j->base[queue->peer] + b->task[k];
        j->point[recv] = send;
        j->peer[send] = recv;
    }
}

/* The k-th calls of a group's members are one point, that of the first who came; latest[k]: who came last. */
static void join_calls(joint *j, int role, int q, int32_t **latest, int32_t *n_latest) {
    const hp_queue_list *l = &j->lists[role];
    const int n = l->first[q + 1] - l->first[q];
    if (!*latest) {
        *latest = HP_NEW(j->arena, int32_t, n);
        *n_latest = n;
        memset(*latest, -1, sizeof(int32_t) * (size_t)n);
    }
    for (int k = 0; k < n && k < *n_latest; k++) {
        const int call = j->base[role] + l->task[l->first[q] + k], last = (*latest)[k];
        if (last >= 0) {
            j->point[call] = j->point[last];
            j->peer[last] = call;
        }
        (*latest)[k] = call;
    }
}

static void join_ranks(joint *j) {
    int32_t **latest = HP_NEW(j->arena, int32_t *, j->p->n_group);
    int32_t *n_latest = HP_NEW(j->arena, int32_t, j->p->n_group);
    for (int role = 0; role < j->p->n_role; role++)
        for (int q = 1; q < j->p->role[role].n_queue; q++) {
            const hp_queue *queue = &j->p->role[role].queue[q];
            if (queue->kind == HP_QUEUE_SEND) join_messages(j, role, q);
            if (queue->kind == HP_QUEUE_COLL)
                join_calls(j, role, q, &latest[queue->peer], &n_latest[queue->peer]);
        }
}

/* --- what waits for what --- */

static void link_queues(joint *j, int role) {
    const hp_queue_list *l = &j->lists[role];
    for (int q = 0; q < j->p->role[role].n_queue; q++)
        for (int i = l->first[q]; i + 1 < l->first[q + 1]; i++) {
            const int behind = j->base[role] + l->task[i + 1];
            j->next[j->base[role] + l->task[i]] = behind;
            j->before[j->point[behind]]++;
        }
}

static void link_dependencies(joint *j) {
    int64_t n_dep = 0;
    int32_t *first = j->succ_first = HP_NEW(j->arena, int32_t, j->n_task + 2);
    for (int role = 0; role < j->p->n_role; role++) {
        const hp_role *r = &j->p->role[role];
        for (int i = 0; i < r->n_dep; i++) first[j->base[role] + r->dep[i] + 2]++;
        n_dep += r->n_dep;
    }
    for (int t = 0; t < j->n_task; t++) first[t + 2] += first[t + 1];
    j->succ = HP_NEW(j->arena, int32_t, n_dep);
    for (int t = 0; t < j->n_task; t++) { /* filling moves first[t + 1] to where it belongs */
        const hp_role *r = &j->p->role[j->role[t]];
        const int base = j->base[j->role[t]];
        for (int i = r->dep_first[t - base]; i < r->dep_first[t - base + 1]; i++) {
            j->succ[first[base + r->dep[i] + 1]++] = t;
            j->before[j->point[t]]++;
        }
    }
}

/* --- the clock --- */

static const hp_task *task_of(const joint *j, int task) {
    return &j->p->role[j->role[task]].task[task - j->base[j->role[task]]];
}

static const hp_queue *queue_of(const joint *j, int task) {
    return &j->p->role[j->role[task]].queue[task_of(j, task)->queue];
}

/* In multiply-adds; of a message or a sum, what its memory traffic takes. */
static double time_of(const joint *j, int task) {
    const int role = j->role[task];
    const hp_work w = hp_task_work(j->p, j->g, &j->p->role[role], task - j->base[role]);
    return w.flops / 2 + HP_MACS_PER_BYTE * w.bytes;
}

/* Streams of the point's ranks are held until then. */
static double move(joint *j, int point) {
    const int stream = hp_lane_stream_of(queue_of(j, point));
    double begin = j->since[point];
    for (int t = point; t >= 0; t = j->peer[t]) {
        const double busy = j->busy[j->role[t] * HP_LANE_STREAMS + stream];
        if (busy > begin) begin = busy;
    }
    const double end = begin + time_of(j, point);
    for (int t = point; t >= 0; t = j->peer[t]) j->busy[j->role[t] * HP_LANE_STREAMS + stream] = end;
    return end;
}

/* --- the order --- */

static void push(joint *j, int point) {
    points *l = hp_lane_stream_of(queue_of(j, point)) < 0 ? &j->ready : &j->waiting;
    l->point[l->n++] = point;
}

static void release(joint *j, int task, double now) {
    if (task < 0) return;
    const int point = j->point[task];
    if (now > j->since[point]) j->since[point] = now;
    if (--j->before[point] == 0) push(j, point);
}

/* The point's tasks come next on their ranks; what is behind them in queues may. */
static void place(joint *j, int point, int lane, double now) {
    for (int t = point; t >= 0; t = j->peer[t]) {
        hp_lane_order *o = &j->order[j->role[t]];
        const int id = t - j->base[j->role[t]];
        o->task[o->n++] = id;
        o->lane[id] = lane;
        j->left--;
    }
    for (int t = point; t >= 0; t = j->peer[t]) release(j, j->next[t], now);
}

static void finish(joint *j, int point, double now) {
    for (int t = point; t >= 0; t = j->peer[t])
        for (int i = j->succ_first[t]; i < j->succ_first[t + 1]; i++) release(j, j->succ[i], now);
}

static void run_ready(joint *j) {
    while (j->ready.first < j->ready.n) {
        const int point = j->ready.point[j->ready.first++];
        const double end = j->since[point] + time_of(j, point);
        place(j, point, -1, end);
        finish(j, point, end);
    }
}

/* Ties go to the one that waits longest. */
static int earliest(const joint *j) {
    int best = j->waiting.point[0];
    for (int i = 1; i < j->waiting.n; i++)
        if (j->since[j->waiting.point[i]] < j->since[best]) best = j->waiting.point[i];
    return best;
}

static exchange exchange_of(const joint *j, int point) {
    const hp_task *t = task_of(j, point);
    const int channel = queue_of(j, point)->channel;
    return (exchange){channel, t->micro, channel & HP_CHANNEL_WITHIN ? t->tag : -1};
}

static bool joins(const joint *j, int point, int with) {
    if (point == with) return true;
    if (hp_lane_stream_of(queue_of(j, with)) != HP_LANE_MESSAGES ||
        hp_lane_stream_of(queue_of(j, point)) != HP_LANE_MESSAGES)
        return false;
    const exchange a = exchange_of(j, point), b = exchange_of(j, with);
    return a.channel == b.channel && a.micro == b.micro && a.tag == b.tag;
}

/* Those that join the earliest, also such as may come now that one before them in its queue has its place. */
static void run_lane(joint *j, int32_t *member) {
    const int with = earliest(j), lane = j->n_lane++;
    int n = 0, kept = 0;
    for (int i = 0; i < j->waiting.n; i++) {
        const int point = j->waiting.point[i];
        if (joins(j, point, with)) {
            member[n++] = point;
            place(j, point, lane, j->since[point]);
        } else {
            j->waiting.point[kept++] = point;
        }
    }
    j->waiting.n = kept;
    for (int i = 0; i < n; i++) finish(j, member[i], move(j, member[i]));
}

static void run(joint *j) {
    int32_t *member = HP_NEW(j->arena, int32_t, j->n_task);
    for (int t = 0; t < j->n_task; t++)
        if (j->point[t] == t && j->before[t] == 0) push(j, t);
    for (run_ready(j); j->waiting.n > 0; run_ready(j)) run_lane(j, member);
}

hp_lane_order *hp_lanes_order(hp_arena *arena, const hp_program *p, const hp_graph *g) {
    joint j = {.arena = arena, .p = p, .g = g, .lists = hp_queue_lists(arena, p)};
    number_tasks(&j);
    join_ranks(&j);
    for (int r = 0; r < p->n_role; r++) link_queues(&j, r);
    link_dependencies(&j);
    j.ready.point = HP_NEW(arena, int32_t, j.n_task);
    j.waiting.point = HP_NEW(arena, int32_t, j.n_task);
    j.since = HP_NEW(arena, double, j.n_task);
    j.busy = HP_NEW(arena, double, p->n_role *HP_LANE_STREAMS);
    j.order = HP_NEW(arena, hp_lane_order, p->n_role);
    for (int r = 0; r < p->n_role; r++) {
        j.order[r].task = HP_NEW(arena, int32_t, p->role[r].n_task);
        j.order[r].lane = HP_NEW(arena, int32_t, p->role[r].n_task);
    }
    run(&j);
    return j.left == 0 ? j.order : NULL;
}
