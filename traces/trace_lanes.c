/* trace_lanes.c - first-fit interval partitioning per (rank, queue kind); optimal in the number of lanes. */
#include "traces/trace_lanes.h"

const char *const hp_queue_names[] = {"compute", "send", "recv", "collective"};
enum { QUEUE_KINDS = sizeof hp_queue_names / sizeof hp_queue_names[0] };

typedef struct track {
    int64_t *end_ns; /* per lane: when it becomes free */
    int n, capacity;
} track;

int hp_trace_span_queue(const hp_trace *t, const hp_trace_span *s) {
    return s->task < 0 ? HP_QUEUE_COMPUTE : t->task[s->task].queue;
}

static int assign_lane(hp_arena *arena, track *k, const hp_trace_span *s) {
    for (int i = 0; i < k->n; i++)
        if (k->end_ns[i] <= s->t0_ns) {
            k->end_ns[i] = s->t1_ns;
            return i;
        }
    HP_ROOM(arena, k->end_ns, k->n, k->capacity);
    k->end_ns[k->n] = s->t1_ns;
    return k->n++;
}

typedef struct keyed {
    const hp_trace_span *s;
    int64_t index;
} keyed;

static int compare_start(const void *a, const void *b) {
    const hp_trace_span *x = ((const keyed *)a)->s, *y = ((const keyed *)b)->s;
    if (x->t0_ns != y->t0_ns) return x->t0_ns < y->t0_ns ? -1 : 1;
    if (x->t1_ns != y->t1_ns) return x->t1_ns < y->t1_ns ? -1 : 1;
    return (x > y) - (x < y);
}

int32_t *hp_trace_lanes(hp_arena *arena, const hp_trace *t) {
    keyed *order = HP_NEW(arena, keyed, t->n_span);
    for (int64_t i = 0; i < t->n_span; i++) order[i] = (keyed){&t->span[i], i};
    qsort(order, (size_t)t->n_span, sizeof *order, compare_start);
    track *tracks = HP_NEW(arena, track, (int64_t)t->ranks * QUEUE_KINDS);
    int32_t *lane = HP_NEW(arena, int32_t, t->n_span);
    for (int64_t i = 0; i < t->n_span; i++) {
        const hp_trace_span *s = order[i].s;
        lane[order[i].index] =
            assign_lane(arena, &tracks[(int64_t)s->rank * QUEUE_KINDS + hp_trace_span_queue(t, s)], s);
    }
    return lane;
}
