/* cost_samples.c - turns spans into samples at the mean speed of their run: each is divided by the slowdown
 * of its step (drift.h).
 *
 * A span of communication also covers waiting for the other side. A sample is the time from the moment all
 * ends were ready until completion, on ranks that had nothing else to do. */
#include "costmodels/cost_samples.h"
#include "plan/lower/lower_placement.h"
#include "plan/program/work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static hp_sample_row *add_row(hp_sample_list *l) {
    HP_ROOM(l->arena, l->row, l->n, l->capacity);
    l->row[l->n] = (hp_sample_row){.run = l->n_run - 1, .variance = NAN};
    return &l->row[l->n++];
}

/* Do the roles do the same work at the same time: data replicas, or the tiles of one stage? */
static bool runs_in_lockstep(const hp_program *p) {
    for (int r = 0; r < p->n_role; r++)
        if (p->role[r].stage != 0) return false;
    return true;
}

/* Number of ranks that compute concurrently on shared hardware: a node's cores, or one GPU. */
static int concurrent_ranks(const hp_machine *m, const hp_program *p) {
    const int ranks = hp_program_ranks(p), devices = hp_machine_devices(m);
    if (m->device.is_cpu) return ranks;
    const int places = ranks / p->clients;
    return p->clients * ((places + devices - 1) / devices);
}

int hp_samples_computing(const hp_machine *m, const hp_program *p) {
    const int ranks = concurrent_ranks(m, p);
    return m->device.is_cpu && ranks > m->devices_per_node ? m->devices_per_node : ranks;
}

/* --- tasks --- */

/* A task's span without its step's slowdown. */
typedef struct span_time {
    int32_t rank, task;
    double seconds;
} span_time;

static int span_compare(const void *a, const void *b) {
    const span_time *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->task != y->task) return x->task < y->task ? -1 : 1;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* Spans of the compute tasks, sorted by rank, task, time. */
static span_time *span_times(hp_arena *arena, const hp_trace *t, const hp_drift *d, int64_t *n) {
    const int64_t most = t->n_iter ? t->iter[t->n_iter - 1].last - t->iter[0].first : 0;
    span_time *all = HP_NEW(arena, span_time, most);
    *n = 0;
    for (int i = 0; i < t->n_iter; i++)
        for (int64_t k = t->iter[i].first; k < t->iter[i].last; k++) {
            const hp_trace_span *s = &t->span[k];
            if (s->task < 0 || t->task[s->task].queue != HP_QUEUE_COMPUTE || s->t1_ns <= s->t0_ns) continue;
            const double seconds = 1e-9 * (double)(s->t1_ns - s->t0_ns);
            all[(*n)++] = (span_time){s->rank, s->task, seconds / hp_drift_factor(d, i, s->rank)};
        }
    qsort(all, (size_t)*n, sizeof *all, span_compare);
    return all;
}

/* Mean of sorted times without the highest and lowest tenth and without interrupted ones. A core whose other
 * hardware thread computes is at most about half as fast, so three times the median indicates another cause.
 * The median alone would be the time in one state of the core, not the mean over tasks. *all: the mean of all
 * times. */
static double typical_seconds(const span_time *s, int64_t n, double *variance, double *all) {
    static const double INTERRUPTED = 3;
    const int64_t cut = n / 10;
    const double most = INTERRUPTED * s[n / 2].seconds;
    double sum = 0, squares = 0;
    int64_t used = 0;
    for (int64_t i = cut; i < n - cut && s[i].seconds <= most; i++, used++) sum += s[i].seconds;
    const double mean = sum / (double)used;
    *all = 0;
    for (int64_t i = 0; i < n; i++) *all += s[i].seconds / (double)n;
    for (int64_t i = cut; i < cut + used; i++) squares += (s[i].seconds - mean) * (s[i].seconds - mean);
    *variance = used > 2 ? squares / (double)(used - 1) / (mean * mean) : NAN;
    return mean;
}

enum { LENGTHS = 32 };

/* Powers of two microseconds. */
static int length_of(double seconds) {
    int k;
    frexp(seconds * 1e6, &k);
    return k < 0 ? 0 : k < LENGTHS ? k : LENGTHS - 1;
}

/* Removes the time in which the rank had no processor. For tasks that are short compared with such absences,
 * the means leave out the spans that met one. For long tasks, each span contains its share. Tasks of similar
 * length together show which case applies: their total time multiplied by the availability is what they
 * computed. `all`: mean over all spans, by row. */
static void leave_out_absence(hp_sample_row *row, const double *all, int n, double availability) {
    double sum[LENGTHS] = {0}, typical[LENGTHS] = {0};
    for (int i = 0; i < n; i++) {
        const int k = length_of(row[i].seconds);
        sum[k] += all[i], typical[k] += row[i].seconds;
    }
    for (int k = 0; k < LENGTHS; k++)
        sum[k] = typical[k] > 0 ? fmin(1, fmax(availability, availability * sum[k] / typical[k])) : 1;
    for (int i = 0; i < n; i++) row[i].seconds *= sum[length_of(row[i].seconds)];
}

/* The device class that the rank ran on; NULL if the plan's machine calls the device slow, because it then
 * says nothing about the class. */
static const char *class_of(const hp_machine *m, const hp_plan *plan, int rank) {
    const hp_machine *on = &plan->machine;
    const int device = hp_machine_mixed(on) ? hp_rank_device(plan->program, on, rank) : 0;
    if (!hp_machine_mixed(on)) return m->device.name;
    return hp_machine_speed_at(on, device) < 1 ? NULL
                                               : hp_machine_class(on, hp_machine_class_at(on, device))->name;
}

void hp_samples_compute(hp_sample_list *l, const hp_machine *m, const hp_plan *plan, const hp_trace *t,
                        const hp_drift *d) {
    int64_t n;
    const span_time *span = span_times(l->arena, t, d, &n);
    const int ranks = concurrent_ranks(m, plan->program);
    const bool room = !m->device.is_cpu || ranks <= m->devices_per_node; /* otherwise ranks wait for a core */
    double *all = HP_NEW(l->arena, double, n);
    const int first = l->n;
    for (int64_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && span[j].rank == span[i].rank && span[j].task == span[i].task;) j++;
        const char *class = class_of(m, plan, span[i].rank);
        if (!class) continue;
        const hp_trace_task *k = &t->task[span[i].task];
        const hp_work w = hp_task_work(plan->program, plan->graph, &plan->program->role[k->role], k->task);
        hp_sample_row *s = add_row(l);
        s->kind = HP_ROW_COMPUTE;
        snprintf(s->class, sizeof s->class, "%s", class);
        snprintf(s->key, sizeof s->key, "%s", w.key);
        s->size = w.size;
        s->flops = w.flops;
        s->bytes = w.bytes;
        s->seconds = typical_seconds(&span[i], j - i, &s->variance, &all[l->n - 1 - first]);
        s->ranks = ranks;
        s->node_ranks = runs_in_lockstep(plan->program) && room ? ranks : 0;
        s->tiles = plan->program->n_role > 1;
    }
    if (room) leave_out_absence(&l->row[first], all, l->n - first, d->availability);
}

/* --- communication --- */

/* One iteration: the spans by (rank, task of its role). */
typedef struct iteration {
    const hp_program *p;
    const hp_trace *t;
    int64_t first, last;
    const hp_trace_span ***span; /* [rank][task], NULL = not recorded */
} iteration;

static void index_spans(iteration *it) {
    for (int r = 0; r < hp_program_ranks(it->p); r++)
        memset(it->span[r], 0, sizeof **it->span * (size_t)it->p->role[r % it->p->n_role].n_task);
    for (int64_t k = it->first; k < it->last; k++) {
        const hp_trace_span *s = &it->t->span[k];
        if (s->task >= 0) it->span[s->rank][it->t->task[s->task].task] = s;
    }
}

/* End of the rank's last other task before `end`; -1: it was computing during part of (start, end). */
static int64_t free_since(const iteration *it, int rank, const hp_trace_span *self, int64_t start,
                          int64_t end) {
    int64_t since = start;
    const hp_role *r = &it->p->role[rank % it->p->n_role];
    for (int task = 0; task < r->n_task; task++) {
        const hp_trace_span *s = it->span[rank][task];
        if (!s || s == self || s->t1_ns <= start || s->t0_ns >= end) continue;
        if (r->task[task].queue == 0) return -1;
        if (s->t1_ns < end && s->t1_ns > since) since = s->t1_ns;
    }
    return since;
}

static int nth_task(const hp_role *r, int queue, int n) {
    for (int t = 0; t < r->n_task; t++) {
        if (r->task[t].queue == queue && n-- == 0) return t;
    }
    return -1;
}

static int place_in_queue(const hp_role *r, int task) {
    int n = 0;
    for (int t = 0; t < task; t++) n += r->task[t].queue == r->task[task].queue;
    return n;
}

static int sender_queue(const hp_program *p, int role, const hp_queue *q) {
    const hp_role *peer = &p->role[q->peer];
    for (int i = 0; i < peer->n_queue; i++) {
        const hp_queue *c = &peer->queue[i];
        if (c->kind == HP_QUEUE_SEND && c->peer == role && c->channel == q->channel) return i;
    }
    return -1;
}

/* Seconds of a message since both ends were ready, as seen by its idle receiver; negative: unknown. */
static double message_seconds(const iteration *it, int rank, int task) {
    const int role = rank % it->p->n_role;
    const hp_role *r = &it->p->role[role];
    const hp_queue *q = &r->queue[r->task[task].queue];
    const int from = rank - role + q->peer, queue = sender_queue(it->p, role, q);
    const int sent = queue < 0 ? -1 : nth_task(&it->p->role[q->peer], queue, place_in_queue(r, task));
    const hp_trace_span *s = sent < 0 ? NULL : it->span[from][sent], *d = it->span[rank][task];
    if (!s || !d) return -1;
    const int64_t start = s->t0_ns > d->t0_ns ? s->t0_ns : d->t0_ns;
    const int64_t since = free_since(it, rank, d, start, d->t1_ns);
    return since < 0 ? -1 : 1e-9 * (double)(d->t1_ns - since);
}

static int member_task(const hp_program *p, int role, int group, int n) {
    const hp_role *r = &p->role[role];
    for (int q = 0; q < r->n_queue; q++) {
        if (r->queue[q].kind == HP_QUEUE_COLL && r->queue[q].peer == group) return nth_task(r, q, n);
    }
    return -1;
}

static double collective_seconds(const iteration *it, int group, int n, int *ranks) {
    int64_t start = 0, end = 0;
    *ranks = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < hp_group_size(it->p, group); k++) {
            const int r = hp_group_rank(it->p, group, 0, k);
            const int task = member_task(it->p, r % it->p->n_role, group, n);
            const hp_trace_span *s = task < 0 ? NULL : it->span[r][task];
            if (!s) return -1;
            if (pass == 0) {
                ++*ranks;
                start = s->t0_ns > start ? s->t0_ns : start;
                end = s->t1_ns > end ? s->t1_ns : end;
            } else {
                const int64_t since = free_since(it, r, s, start, s->t1_ns);
                if (since < 0) return -1;
                start = since > start ? since : start;
            }
        }
    }
    return end > start ? 1e-9 * (double)(end - start) : -1;
}

static void add_comm(hp_sample_list *l, hp_row_kind kind, const char *class, const char *key, double bytes,
                     double seconds, int ranks) {
    hp_sample_row *s = add_row(l);
    s->kind = kind;
    snprintf(s->class, sizeof s->class, "%s", class);
    snprintf(s->key, sizeof s->key, "%s", key);
    s->size = s->bytes = bytes;
    s->seconds = seconds;
    s->ranks = ranks;
}

/* The key of messages. */
static const char *wire_name(const hp_machine *m, const hp_program *p, const hp_queue *q) {
    return hp_wire_of(m, p->device, q->backend) == HP_WIRE_ANY ? "" : hp_backend_names[q->backend];
}

static hp_collective_call call_of(const hp_machine *m, const hp_program *p, const hp_queue *q,
                                  const hp_task *k, int ranks) {
    return (hp_collective_call){.by = hp_wire_of_collective(m, p->device, q->backend),
                                .algorithm = (hp_algorithm)k->algorithm,
                                .what = hp_task_collective(k),
                                .ranks = ranks,
                                .per_node = hp_group_per_node(p, m, q->peer, 0)};
}

/* Messages need both ends, so this is the mean of the ranks' factors. */
static double step_factor(const hp_drift *d, int iter) {
    double sum = 0;
    for (int r = 0; r < d->n_rank; r++) sum += hp_drift_factor(d, iter, r);
    return sum / d->n_rank;
}

static const char *link_between(const hp_machine *m, const hp_program *p, int a, int b) {
    return hp_rank_node(p, m, a) == hp_rank_node(p, m, b) ? m->intra.name : m->inter.name;
}

static void add_messages(hp_sample_list *l, const hp_machine *m, const iteration *it) {
    for (int rank = 0; rank < hp_program_ranks(it->p); rank++) {
        const hp_role *r = &it->p->role[rank % it->p->n_role];
        for (int t = 0; t < r->n_task; t++) {
            const hp_task *k = &r->task[t];
            if (k->op != HP_TASK_RECV) continue;
            const double s = message_seconds(it, rank, t);
            const hp_queue *q = &r->queue[k->queue];
            if (s > 0)
                add_comm(l, HP_ROW_P2P, link_between(m, it->p, rank, rank - rank % it->p->n_role + q->peer),
                         wire_name(m, it->p, q), (double)hp_task_bytes(k), s, 2);
        }
    }
}

/* Collectives are numbered within the queue of the first participating role. */
static void add_collectives(hp_sample_list *l, const hp_machine *m, const iteration *it) {
    for (int g = 0; g < it->p->n_group; g++) {
        const int role = it->p->member[it->p->group[g].first];
        for (int n = 0;; n++) {
            const int task = member_task(it->p, role, g, n);
            if (task < 0) break;
            int ranks;
            char key[HP_COLLECTIVE_KEY];
            const hp_task *k = &it->p->role[role].task[task];
            const double s = collective_seconds(it, g, n, &ranks);
            if (s <= 0 || ranks < 2) continue;
            const hp_collective_call call = call_of(m, it->p, &it->p->role[role].queue[k->queue], k, ranks);
            add_comm(l, HP_ROW_COLLECTIVE, call.per_node >= ranks ? m->intra.name : m->inter.name,
                     hp_collective_key(&call, key), (double)hp_task_bytes(k), s, ranks);
        }
    }
}

static bool only_messages(const hp_program *p) {
    for (int role = 0; role < p->n_role; role++)
        for (int t = 0; t < p->role[role].n_task; t++)
            if (p->role[role].task[t].op == HP_TASK_FWD) return false;
    return true;
}

void hp_samples_comm(hp_sample_list *l, const hp_machine *m, const hp_plan *plan, const hp_trace *t,
                     const hp_drift *d) {
    const hp_program *p = plan->program;
    const int ranks = hp_program_ranks(p), first = l->n;
    hp_machine placed = *m; /* a plan may use one device of each node */
    placed.nodes = plan->machine.nodes;
    placed.devices_per_node = plan->machine.devices_per_node;
    /* with more ranks than cores, even a waiting rank may not be running, so nothing can be concluded */
    if (ranks < 2 || t->n_rank != ranks || (m->device.is_cpu && ranks > hp_machine_devices(&placed))) return;
    iteration it = {.p = p, .t = t, .span = HP_NEW(l->arena, const hp_trace_span **, ranks)};
    for (int r = 0; r < ranks; r++)
        it.span[r] = HP_NEW(l->arena, const hp_trace_span *, p->role[r % p->n_role].n_task);
    for (int i = 0; i < t->n_iter; i++) {
        it.first = t->iter[i].first;
        it.last = t->iter[i].last;
        index_spans(&it);
        const int before = l->n;
        add_messages(l, &placed, &it);
        add_collectives(l, &placed, &it);
        for (int k = before; k < l->n; k++) l->row[k].seconds /= step_factor(d, i);
    }
    const bool benchmark = only_messages(p);
    for (int i = first; i < l->n; i++) l->row[i].benchmark = benchmark;
}
