/* comm_log.c - joins the spans of tasks that meet, step by step, and adds them to the row of their kind. */
#include "traces/comm_log.h"

#include "traces/meetings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One row under construction. */
typedef struct filling {
    hp_comm_row row;
    int32_t n, room;
    double *time_s; /* time of every meeting */
    double wait_s, sent;
    int64_t *late; /* per rank */
} filling;

/* A meeting in one step: the spans of its members. */
typedef struct meeting {
    int32_t number, replica, task; /* index; replica; task: index into hp_trace.task, of its last member */
    int64_t first_ns, last_ns, end_ns;
    int32_t last_rank;
} meeting;

typedef struct log_maker {
    hp_arena *arena;
    const hp_trace *t;
    const hp_program *p;
    int32_t *row_of; /* per trace task; -1: it moves nothing */
    filling *fill;
    int n, room;
} log_maker;

static const hp_task *task_of(const log_maker *m, int k) {
    const hp_trace_task *t = &m->t->task[k];
    return &m->p->role[t->role].task[t->task];
}

static const hp_queue *queue_of(const log_maker *m, int k) {
    return &m->p->role[m->t->task[k].role].queue[task_of(m, k)->queue];
}

/* The part of a row that distinguishes kinds, for a task. */
static hp_comm_row kind_of(const log_maker *m, int k) {
    const hp_task *t = task_of(m, k);
    const hp_queue *q = queue_of(m, k);
    const bool collective = q->kind == HP_QUEUE_COLL;
    return (hp_comm_row){.what = collective                       ? hp_task_infos[t->op].name
                                 : q->channel & HP_CHANNEL_WITHIN ? "halo"
                                                                  : "stage",
                         .op = collective ? t->op : HP_TASK_RECV,
                         .members = collective ? hp_group_size(m->p, q->peer) : 2,
                         .group = collective ? q->peer : -1,
                         .backend = q->backend,
                         .algorithm = t->algorithm,
                         .dtype = t->dtype,
                         .bytes = m->t->task[k].bytes,
                         .late_rank = -1};
}

bool hp_comm_same_kind(const hp_comm_row *a, const hp_comm_row *b) {
    return a->op == b->op && strcmp(a->what, b->what) == 0 && a->group == b->group &&
           a->backend == b->backend && a->algorithm == b->algorithm && a->dtype == b->dtype &&
           a->bytes == b->bytes;
}

static int find_row(log_maker *m, const hp_comm_row *kind) {
    for (int i = 0; i < m->n; i++)
        if (hp_comm_same_kind(&m->fill[i].row, kind)) return i;
    HP_ROOM(m->arena, m->fill, m->n, m->room);
    m->fill[m->n] = (filling){.row = *kind, .late = HP_NEW(m->arena, int64_t, m->t->ranks + 1)};
    return m->n++;
}

static void list_rows(log_maker *m) {
    m->row_of = HP_NEW(m->arena, int32_t, m->t->n_task);
    for (int k = 0; k < m->t->n_task; k++) {
        m->row_of[k] = -1;
        if (m->t->task[k].queue == (int32_t)HP_QUEUE_COMPUTE) continue;
        const hp_comm_row kind = kind_of(m, k);
        m->row_of[k] = find_row(m, &kind);
    }
}

/* --- meetings of one step --- */

static int by_meeting(const void *a, const void *b) {
    const meeting *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return (x->replica > y->replica) - (x->replica < y->replica);
}

static meeting alone(const log_maker *m, const hp_trace_span *s) {
    const hp_trace_task *t = &m->t->task[s->task];
    return (meeting){.number = t->meeting,
                     .replica = t->world ? 0 : s->rank / m->p->n_role,
                     .task = s->task,
                     .first_ns = s->t0_ns,
                     .last_ns = s->t0_ns,
                     .end_ns = s->t1_ns,
                     .last_rank = s->rank};
}

static void join(meeting *all, const meeting *one) {
    if (one->first_ns < all->first_ns) all->first_ns = one->first_ns;
    if (one->end_ns > all->end_ns) all->end_ns = one->end_ns;
    if (one->last_ns <= all->last_ns) return;
    all->last_ns = one->last_ns;
    all->last_rank = one->last_rank;
}

static void add(log_maker *m, const meeting *e) {
    filling *f = &m->fill[m->row_of[e->task]];
    HP_ROOM(m->arena, f->time_s, f->n, f->room);
    f->time_s[f->n++] = 1e-9 * (double)(e->end_ns - e->last_ns);
    f->wait_s += 1e-9 * (double)(e->last_ns - e->first_ns);
    if (e->last_ns > e->first_ns) f->late[e->last_rank]++;
}

static void add_step(log_maker *m, const hp_trace_iter *it, meeting *room) {
    int64_t n = 0;
    for (int64_t i = it->first; i < it->last; i++) {
        const hp_trace_span *s = &m->t->span[i];
        if (s->task >= 0 && m->row_of[s->task] >= 0 && m->t->task[s->task].meeting >= 0)
            room[n++] = alone(m, s);
    }
    qsort(room, (size_t)n, sizeof *room, by_meeting);
    for (int64_t i = 0; i < n;) {
        meeting all = room[i++];
        for (; i < n && by_meeting(&room[i], &all) == 0; i++) join(&all, &room[i]);
        add(m, &all);
    }
}

static void add_steps(log_maker *m) {
    int64_t most = 0;
    for (int i = 0; i < m->t->n_iter; i++)
        if (m->t->iter[i].last - m->t->iter[i].first > most) most = m->t->iter[i].last - m->t->iter[i].first;
    meeting *room = HP_NEW(m->arena, meeting, most);
    for (int i = 0; i < m->t->n_iter; i++) add_step(m, &m->t->iter[i], room);
}

/* --- bytes --- */

/* Counters cover all steps of the run; the trace may have only the newest ones. */
static void add_sent(log_maker *m, const hp_trace_value *sent, int64_t n_sent) {
    int32_t *first = HP_NEW(m->arena, int32_t, m->p->n_role + 1);
    for (int k = m->t->n_task - 1; k >= 0; k--) first[m->t->task[k].role] = k;
    for (int64_t i = 0; i < n_sent; i++) {
        const int role = sent[i].rank % m->p->n_role, k = first[role] + sent[i].iter;
        if (sent[i].iter < 0 || sent[i].iter >= m->p->role[role].n_task || k >= m->t->n_task ||
            m->row_of[k] < 0)
            continue;
        m->fill[m->row_of[k]].sent += sent[i].value;
    }
}

static double ideal_of(const hp_comm_row *r) {
    const double share =
        r->group < 0 ? 0.5 : hp_collective_volume((hp_collective)(r->op - HP_TASK_ALLREDUCE), r->members);
    return r->calls * share * r->members * (double)r->bytes;
}

static void finish(const log_maker *m, filling *f, bool counted, double steps) {
    hp_comm_row *r = &f->row;
    const double factor =
        r->group < 0 ? 1 : hp_collective_bus_factor((hp_collective)(r->op - HP_TASK_ALLREDUCE), r->members);
    const int32_t n = f->n > 0 ? f->n : 1;
    r->calls = m->t->n_iter > 0 ? (double)f->n / m->t->n_iter : 0;
    r->wait_s = f->wait_s / n;
    r->time_s = f->n > 0 ? hp_median(f->time_s, f->n) : NAN;
    r->bus_bytes_per_s = r->time_s > 0 ? factor * (double)r->bytes / r->time_s : NAN;
    r->is_ideal = r->group >= 0 && !hp_backend_steps(r->backend);
    r->ideal_bytes = ideal_of(r);
    r->sent_bytes = counted && steps > 0 ? f->sent / steps : (double)NAN;
    for (int k = 0; k < m->t->ranks; k++)
        if (f->late[k] > 0 && (r->late_rank < 0 || f->late[k] > f->late[r->late_rank])) r->late_rank = k;
    r->late_share = r->late_rank < 0 ? 0 : (double)f->late[r->late_rank] / n;
}

static int by_time(const void *a, const void *b) {
    const hp_comm_row *x = a, *y = b;
    const double p = x->calls * x->time_s, q = y->calls * y->time_s;
    return (p < q) - (p > q);
}

void hp_comm_log(hp_arena *arena, const hp_trace *t, const hp_program *p, const hp_trace_value *sent,
                 int64_t n_sent, double steps, hp_comm_row **row, int *n) {
    log_maker m = {.arena = arena, .t = t, .p = p};
    list_rows(&m);
    add_steps(&m);
    add_sent(&m, sent, n_sent);
    *row = HP_NEW(arena, hp_comm_row, m.n);
    *n = m.n;
    for (int i = 0; i < m.n; i++) {
        finish(&m, &m.fill[i], n_sent > 0, steps);
        (*row)[i] = m.fill[i].row;
    }
    qsort(*row, (size_t)m.n, sizeof **row, by_time);
}
