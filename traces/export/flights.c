/* flights.c - pairs the ends of messages by step, replica and meeting; adds up the bytes in flight. */
#include "traces/export/flights.h"

/* An end of a message: its span. */
typedef struct end {
    int32_t iter, replica, meeting;
    int64_t span;
} end;

static int compare_ends(const void *a, const void *b) {
    const end *x = a, *y = b;
    if (x->iter != y->iter) return x->iter < y->iter ? -1 : 1;
    if (x->replica != y->replica) return x->replica < y->replica ? -1 : 1;
    if (x->meeting != y->meeting) return x->meeting < y->meeting ? -1 : 1;
    return (x->span > y->span) - (x->span < y->span);
}

static int compare_flights(const void *a, const void *b) {
    const hp_flight *x = a, *y = b;
    if (x->t0_ns != y->t0_ns) return x->t0_ns < y->t0_ns ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

static bool is_message(int queue) {
    return queue == HP_QUEUE_SEND || queue == HP_QUEUE_RECV;
}

/* When each span began to move something: at its start in incomplete steps, whose waits are unknown. */
static int64_t *starts(hp_arena *arena, const hp_trace *t) {
    int64_t *start = HP_NEW(arena, int64_t, t->n_span);
    for (int64_t i = 0; i < t->n_span; i++) start[i] = t->span[i].t0_ns;
    for (int k = 0; k < t->n_iter; k++) {
        const hp_trace_iter *it = &t->iter[k];
        const int64_t *met = hp_trace_met(arena, t, it);
        for (int64_t i = it->first; i < it->last; i++) start[i] = met[i - it->first];
    }
    return start;
}

static end *message_ends(hp_arena *arena, const hp_trace *t, int64_t *n) {
    end *list = HP_NEW(arena, end, t->n_span);
    *n = 0;
    for (int64_t i = 0; i < t->n_span; i++) {
        const hp_trace_span *s = &t->span[i];
        if (s->task < 0) continue;
        const hp_trace_task *k = &t->task[s->task];
        if (is_message(k->queue) && k->meeting >= 0)
            list[(*n)++] = (end){s->iter, s->rank / t->n_role, k->meeting, i};
    }
    qsort(list, (size_t)*n, sizeof *list, compare_ends);
    return list;
}

static bool meet(const end *a, const end *b) {
    return a->iter == b->iter && a->replica == b->replica && a->meeting == b->meeting;
}

/* The last nanosecond of a span: viewers draw an arrow to what is open at its time. */
static int64_t last_ns(const hp_trace_span *s) {
    return s->t1_ns > s->t0_ns ? s->t1_ns - 1 : s->t0_ns;
}

static void add_message(const hp_trace *t, const int64_t *start, int64_t a, int64_t b, hp_flight *list,
                        int64_t *n) {
    const bool first_sends = t->task[t->span[a].task].queue == HP_QUEUE_SEND;
    const int64_t from = first_sends ? a : b, to = first_sends ? b : a;
    const hp_trace_task *sender = &t->task[t->span[from].task], *receiver = &t->task[t->span[to].task];
    if (sender->queue != HP_QUEUE_SEND || receiver->queue != HP_QUEUE_RECV) return;
    const hp_flight f = {from, to, start[from], last_ns(&t->span[to]), sender->bytes};
    if (f.t1_ns >= f.t0_ns) list[(*n)++] = f;
}

static void add_messages(hp_arena *arena, const hp_trace *t, const int64_t *start, hp_flight *list,
                         int64_t *n) {
    int64_t n_end = 0;
    const end *e = message_ends(arena, t, &n_end);
    for (int64_t i = 0; i + 1 < n_end; i++)
        if (meet(&e[i], &e[i + 1])) add_message(t, start, e[i].span, e[i + 1].span, list, n);
}

static void add_collectives(const hp_trace *t, const int64_t *start, hp_flight *list, int64_t *n) {
    for (int64_t i = 0; i < t->n_span; i++) {
        const hp_trace_span *s = &t->span[i];
        if (s->task < 0 || t->task[s->task].queue != HP_QUEUE_COLL) continue;
        list[(*n)++] = (hp_flight){i, i, start[i], last_ns(s), t->task[s->task].bytes};
    }
}

hp_flight *hp_trace_flights(hp_arena *arena, const hp_trace *t, int64_t *n) {
    const int64_t *start = starts(arena, t);
    hp_flight *list = HP_NEW(arena, hp_flight, t->n_span);
    *n = 0;
    add_messages(arena, t, start, list, n);
    add_collectives(t, start, list, n);
    qsort(list, (size_t)*n, sizeof *list, compare_flights);
    return list;
}

/* --- bytes in flight --- */

static int compare_values(const void *a, const void *b) {
    const hp_trace_value *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

hp_trace_value *hp_flights_bytes(hp_arena *arena, const hp_flight *flight, int64_t n_flight, int64_t *n) {
    hp_trace_value *v = HP_NEW(arena, hp_trace_value, 2 * n_flight);
    for (int64_t i = 0; i < n_flight; i++) {
        v[2 * i] = (hp_trace_value){0, 0, flight[i].t0_ns, (double)flight[i].bytes};
        v[2 * i + 1] = (hp_trace_value){0, 0, flight[i].t1_ns, -(double)flight[i].bytes};
    }
    qsort(v, (size_t)(2 * n_flight), sizeof *v, compare_values);
    *n = 0;
    double in_flight = 0; /* whole numbers below 2^53: exact in any order */
    for (int64_t i = 0; i < 2 * n_flight; i++) {
        in_flight += v[i].value;
        if (i + 1 < 2 * n_flight && v[i + 1].t_ns == v[i].t_ns) continue;
        v[(*n)++] = (hp_trace_value){0, 0, v[i].t_ns, in_flight};
    }
    return v;
}
