/* timeline.c - a buffer is in use from the start of the first task that touches it to the end of the last.
 * The plan's offsets keep such buffers apart, whatever the order in time. */
#include "sim/results/timeline.h"

#include <stdlib.h>

typedef struct change {
    int64_t t_ns, bytes;
    int order; /* orders equal times: ends precede beginnings */
} change;

static int change_compare(const void *a, const void *b) {
    const change *x = a, *y = b;
    if (x->t_ns != y->t_ns) return x->t_ns < y->t_ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

typedef struct lifetime {
    int64_t t0_ns, t1_ns; /* t1 < 0: unused */
} lifetime;

static lifetime *find_lifetimes(hp_arena *arena, const hp_role *r, const hp_span *span, int64_t n_span) {
    lifetime *life = HP_NEW(arena, lifetime, r->n_buffer);
    for (int b = 0; b < r->n_buffer; b++) life[b] = (lifetime){INT64_MAX, -1};
    for (int64_t i = 0; i < n_span; i++) {
        int32_t used[HP_MAX_USES];
        for (int n = hp_task_uses(r, span[i].task, used), k = 0; k < n; k++) {
            const int32_t b = used[k];
            if (span[i].t0_ns < life[b].t0_ns) life[b].t0_ns = span[i].t0_ns;
            if (span[i].t1_ns > life[b].t1_ns) life[b].t1_ns = span[i].t1_ns;
        }
    }
    return life;
}

/* Adds two changes per temporary buffer; returns their number. */
static int list_changes(const hp_role *r, const lifetime *life, change *c, double *base) {
    int n = 0;
    *base = 0;
    for (int i = 0; i < r->n_buffer; i++) {
        const hp_buffer *b = &r->buffer[i];
        if (b->kind < HP_BUF_FIXED) {
            *base += (double)b->bytes;
        } else if (life[i].t1_ns >= 0) {
            c[n++] = (change){life[i].t0_ns, b->bytes, r->n_buffer + i};
            c[n++] = (change){life[i].t1_ns, -b->bytes, i};
        }
    }
    qsort(c, (size_t)n, sizeof *c, change_compare);
    return n;
}

int64_t hp_sim_memory_timeline(hp_arena *arena, const hp_role *r, const hp_span *span, int64_t n_span,
                               hp_sample **out) {
    change *c = HP_NEW(arena, change, 2 * r->n_buffer);
    double bytes;
    const int n = list_changes(r, find_lifetimes(arena, r, span, n_span), c, &bytes);
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
