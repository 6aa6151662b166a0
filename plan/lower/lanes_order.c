/* lanes_order.c - one order for the tasks of all ranks of a replica: list scheduling on a clock without a
 * machine, both ends of a message and all calls of a collective being one point of it.
 *
 * A task takes the time of its arithmetic and its memory traffic, as if every rank had the same processor.
 * What is not NCCL's comes as soon as it may. Of NCCL's points that may come when nothing else is left, the
 * earliest is next: a stream is serial, so a message that comes too early in it holds up those after it.
 * With a message come the others of its exchange: of the same tensor between the parts of a stage, of the
 * same micro-batch between two stages. */
#include "plan/lower/lanes_order.h"

#include "plan/program/ready.h"
#include "plan/program/work.h"

#include <string.h>

typedef struct points {
    int32_t n, first, *point; /* first: not yet removed from the front */
} points;

/* Tasks that move together. */
typedef struct exchange {
    int32_t channel, micro, tag; /* tag -1: all of the micro-batch */
} exchange;

typedef struct joint {
    hp_arena *arena;
    const hp_program *p;
    const hp_graph *g;
    const hp_wiring *w;
    hp_ready *ready;       /* per role */
    int32_t n_task, *base; /* base: per role, its first task's number over all roles */
    int32_t *role;         /* per task, numbered so */
    int32_t *point;        /* per task: the first task of its point */
    int32_t *peer;         /* per task: the next task of its point, -1 */
    int32_t *missing;      /* per point: tasks of it that may not start yet */
    double *since;         /* per point: when all that it has waited for so far was done */
    double *busy;          /* per role and stream: until when */
    points free, waiting;  /* points that may come; waiting: NCCL's */
    int32_t n_lane, left;
    hp_lane_order *order;
} joint;

/* --- points --- */

static void number_tasks(joint *j) {
    j->base = HP_NEW(j->arena, int32_t, j->p->n_role + 1);
    for (int r = 0; r < j->p->n_role; r++) j->base[r + 1] = j->base[r] + j->p->role[r].n_task;
    j->left = j->n_task = j->base[j->p->n_role];
    int32_t **per_task[] = {&j->role, &j->point, &j->peer, &j->missing};
    for (int i = 0; i < 4; i++) *per_task[i] = HP_NEW(j->arena, int32_t, j->n_task);
    for (int r = 0; r < j->p->n_role; r++)
        for (int t = j->base[r]; t < j->base[r + 1]; t++) {
            j->role[t] = r;
            j->point[t] = t;
            j->peer[t] = -1;
        }
}

/* The two ends of each message of a send queue are one point, the sender's. */
static void join_messages(joint *j, int role, int q) {
    const hp_wired_queue *queue = &j->w->role[role].queue[q];
    const int peer = j->p->role[role].queue[q].peer;
    for (int k = 0; k < queue->n; k++) {
        const int recv = hp_wired_other_end(j->w, role, queue->task[k]);
        if (recv < 0) continue;
        j->point[j->base[peer] + recv] = j->base[role] + queue->task[k];
        j->peer[j->base[role] + queue->task[k]] = j->base[peer] + recv;
    }
}

/* The k-th calls of a group's members are one point, that of its first member. */
static void join_calls(joint *j, const hp_wired_group *g, int k) {
    int last = -1;
    for (int i = 0; i < g->n; i++) {
        const int task = hp_wired_call(j->w, g, i, k), call = j->base[g->role[i]] + task;
        if (task < 0) continue;
        if (last >= 0) {
            j->point[call] = j->point[last];
            j->peer[last] = call;
        }
        last = call;
    }
}

static void join_ranks(joint *j) {
    for (int role = 0; role < j->p->n_role; role++)
        for (int q = 1; q < j->p->role[role].n_queue; q++)
            if (j->p->role[role].queue[q].kind == HP_QUEUE_SEND) join_messages(j, role, q);
    for (int g = 0; g < j->p->n_group; g++)
        for (int k = 0; k < j->w->group[g].calls; k++) join_calls(j, &j->w->group[g], k);
    for (int t = 0; t < j->n_task; t++) j->missing[j->point[t]]++;
}

/* --- the clock --- */

static const hp_task *task_of(const joint *j, int task) {
    return &j->p->role[j->role[task]].task[task - j->base[j->role[task]]];
}

static const hp_queue *queue_of(const joint *j, int task) {
    return &j->p->role[j->role[task]].queue[task_of(j, task)->queue];
}

static hp_work work_of(const joint *j, int task) {
    const hp_role *r = &j->p->role[j->role[task]];
    const int id = task - j->base[j->role[task]];
    const hp_task *t = &r->task[id];
    hp_work_case c;
    if (hp_work_case_of(j->p, j->g, r, id, &c)) return hp_work_amounts(j->g, (hp_dtype)j->p->dtype, &c);
    if (t->queue == 0) return hp_task_work(j->p, j->g, r, id);
    return (hp_work){.bytes = (double)hp_task_bytes(t)};
}

/* A task's length in multiply-adds; for a message or a sum, the equivalent of its memory traffic. */
static double time_of(const joint *j, int task) {
    const hp_work w = work_of(j, task);
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
    points *l = hp_lane_stream_of(queue_of(j, point)) < 0 ? &j->free : &j->waiting;
    l->point[l->n++] = point;
}

/* Delays the task's point to `now`, when a dependency was done. */
static void delay(joint *j, int task, double now) {
    const int point = j->point[task];
    if (now > j->since[point]) j->since[point] = now;
}

/* A task may start; with the last of a point, the point may come. */
static void arrive(joint *j, int task) {
    if (--j->missing[j->point[task]] == 0) push(j, j->point[task]);
}

/* The next task of a queue may follow. */
static void start(joint *j, int role, int queue, double now) {
    const int next = hp_ready_start(&j->ready[role], queue), head = hp_ready_head(&j->ready[role], queue);
    if (head >= 0) delay(j, j->base[role] + head, now);
    if (next >= 0) arrive(j, j->base[role] + next);
}

/* The point's tasks come next on their ranks; what is after them in queues may. */
static void place(joint *j, int point, int lane, double now) {
    for (int t = point; t >= 0; t = j->peer[t]) {
        hp_lane_order *o = &j->order[j->role[t]];
        const int id = t - j->base[j->role[t]];
        o->task[o->n++] = id;
        o->lane[id] = lane;
        j->left--;
    }
    for (int t = point; t >= 0; t = j->peer[t]) start(j, j->role[t], task_of(j, t)->queue, now);
}

static void finish(joint *j, int point, double now) {
    for (int t = point; t >= 0; t = j->peer[t]) {
        const int role = j->role[t], base = j->base[role];
        const hp_wired_role *w = &j->w->role[role];
        for (int i = w->succ_first[t - base]; i < w->succ_first[t - base + 1]; i++) {
            delay(j, base + w->succ[i], now);
            if (hp_ready_meet(&j->ready[role], w->succ[i])) arrive(j, base + w->succ[i]);
        }
    }
}

static void run_free(joint *j) {
    while (j->free.first < j->free.n) {
        const int point = j->free.point[j->free.first++];
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
    return (exchange){channel, t->micro, channel & HP_CHANNEL_WITHIN ? t->message.position : -1};
}

static bool joins(const joint *j, int point, int with) {
    if (point == with) return true;
    if (hp_lane_stream_of(queue_of(j, with)) != HP_LANE_MESSAGES ||
        hp_lane_stream_of(queue_of(j, point)) != HP_LANE_MESSAGES)
        return false;
    const exchange a = exchange_of(j, point), b = exchange_of(j, with);
    return a.channel == b.channel && a.micro == b.micro && a.tag == b.tag;
}

/* Forms a lane of the points that join the earliest one, including those that may come now because the one
 * before them in their queue has its place. */
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

static void open_roles(joint *j) {
    j->ready = HP_NEW(j->arena, hp_ready, j->p->n_role);
    for (int r = 0; r < j->p->n_role; r++) {
        hp_ready_init(j->arena, &j->w->role[r], &j->ready[r]);
        for (int q = 0; q < j->p->role[r].n_queue; q++) {
            const int task = hp_ready_task(&j->ready[r], q);
            if (task >= 0) j->missing[j->point[j->base[r] + task]]--;
        }
    }
}

static void run(joint *j) {
    int32_t *member = HP_NEW(j->arena, int32_t, j->n_task);
    for (int t = 0; t < j->n_task; t++)
        if (j->point[t] == t && j->missing[t] == 0) push(j, t);
    for (run_free(j); j->waiting.n > 0; run_free(j)) run_lane(j, member);
}

hp_lane_order *hp_lanes_order(hp_arena *arena, const hp_wiring *w, const hp_graph *g) {
    const hp_program *p = w->program;
    joint j = {.arena = arena, .p = p, .g = g, .w = w};
    number_tasks(&j);
    join_ranks(&j);
    open_roles(&j);
    j.free.point = HP_NEW(arena, int32_t, j.n_task);
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
