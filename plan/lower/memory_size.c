/* memory_size.c - offsets from lifetimes, the largest buffers first: each at the lowest place that no buffer
 * alive at the same time has taken (greedy by size; Pisarchyk & Lee 2020). Where a program's buffers differ
 * as much as an image network's do, this comes to the most that is alive at once, or close. */
#include "plan/lower/lower_inside.h"

#include <stdlib.h>

enum { ALIGN = 64, MOST = 6000 /* buffers: pairs of them are compared */ };

typedef struct item {
    int64_t bytes, offset;
    int32_t first, last, buffer;
} item;

static int larger_first(const void *a, const void *b) {
    const item *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->buffer - y->buffer;
}

static int by_offset(const void *a, const void *b) {
    const item *x = *(item *const *)a, *y = *(item *const *)b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->buffer - y->buffer;
}

/* Lowest gap between the placed items that are alive with `it`. `near`: room for pointers. */
static int64_t lowest(item *placed, int n, const item *it, int64_t from, item **near) {
    int found = 0;
    for (int i = 0; i < n; i++)
        if (placed[i].first <= it->last && it->first <= placed[i].last) near[found++] = &placed[i];
    qsort(near, (size_t)found, sizeof *near, by_offset);
    int64_t at = from;
    for (int i = 0; i < found; i++) {
        if (near[i]->offset - at >= it->bytes) break;
        const int64_t end = near[i]->offset + near[i]->bytes;
        if (end > at) at = end;
    }
    return at;
}

int64_t hp_memory_by_size(hp_arena *arena, hp_role *r, int64_t from, int64_t best) {
    const int n = r->n_buffer - HP_BUF_FIXED;
    int64_t top = from;
    if (n > MOST) return best;
    item *list = HP_NEW(arena, item, n + 1), **near = HP_NEW(arena, item *, n + 1);
    for (int i = 0; i < n; i++) {
        const hp_buffer *b = &r->buffer[HP_BUF_FIXED + i];
        list[i] = (item){(b->bytes + ALIGN - 1) / ALIGN * ALIGN, 0, b->first, b->last, HP_BUF_FIXED + i};
    }
    qsort(list, (size_t)n, sizeof *list, larger_first);
    for (int i = 0; i < n; i++) {
        list[i].offset = lowest(list, i, &list[i], from, near);
        const int64_t end = list[i].offset + r->buffer[list[i].buffer].bytes;
        if (end > top) top = end;
    }
    if (top >= best) return best;
    for (int i = 0; i < n; i++) r->buffer[list[i].buffer].offset = list[i].offset;
    return top;
}
