/* timeline.c - a buffer is in use from the start of its first task to the end of its last. */
#include "sim/timeline.h"

#include <stdlib.h>

typedef struct change {
    int64_t t_ns, bytes;
    int order; /* keeps equal times in one order: what ends goes before what begins */
} change;

static int change_compare(const void *a, const void *b) {
    const change *x = a, *y = b;
    if (x->t_ns != y->t_ns) return x->t_ns < y->t_ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static bool persistent(const hp_role *r, const hp_buffer *b) {
    return b->kind < HP_BUF_FIXED || b->first < 0 || b->last >= r->n_task;
}

/* Two changes per buffer that comes and goes; returns how many. */
static int list_changes(const hp_role *r, const int64_t *t0_ns, const int64_t *t1_ns, change *c, double *base) {
    int n = 0;
    *base = 0;
    for (int i = 0; i < r->n_buffer; i++) {
        const hp_buffer *b = &r->buffer[i];
        if (persistent(r, b)) {
            *base += (double)b->bytes;
            continue;
        }
        c[n++] = (change){t0_ns[b->first], b->bytes, r->n_buffer + i};
        c[n++] = (change){t1_ns[b->last], -b->bytes, i};
    }
    qsort(c, (size_t)n, sizeof *c, change_compare);
    return n;
}

int64_t hp_sim_memory_timeline(hp_arena *arena, const hp_role *r, const hp_span *span, int64_t n_span, hp_sample **out) {
    int64_t *t0_ns = HP_NEW(arena, int64_t, r->n_task), *t1_ns = HP_NEW(arena, int64_t, r->n_task);
    for (int64_t i = 0; i < n_span; i++) {
        t0_ns[span[i].task] = span[i].t0_ns;
        t1_ns[span[i].task] = span[i].t1_ns;
    }
    change *c = HP_NEW(arena, change, 2 * r->n_buffer);
    double bytes;
    const int n = list_changes(r, t0_ns, t1_ns, c, &bytes);
    *out = HP_NEW(arena, hp_sample, n + 1);
    int64_t n_out = 0;
    (*out)[n_out++] = (hp_sample){.name = HP_COUNTER_MEMORY, .value = bytes};
    for (int i = 0; i < n; i++) {
        bytes += (double)c[i].bytes;
        if (i + 1 < n && c[i + 1].t_ns == c[i].t_ns) continue; /* one sample per instant */
        (*out)[n_out++] = (hp_sample){.name = HP_COUNTER_MEMORY, .t_ns = c[i].t_ns, .value = bytes};
    }
    return n_out;
}
