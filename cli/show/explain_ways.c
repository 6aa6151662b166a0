/* explain_ways.c - which back end and algorithm does collectives of which sizes. */
#include "cli/show/explain.h"

#include <stdlib.h>

static int ways_compare(const void *a, const void *b) {
    const explain_way *x = a, *y = b;
    if (x->what != y->what) return x->what < y->what ? -1 : 1;
    if (x->ranks != y->ranks) return x->ranks < y->ranks ? -1 : 1;
    if (x->least != y->least) return x->least < y->least ? -1 : 1;
    return x->most < y->most ? -1 : x->most > y->most;
}

static bool is_like(const explain_way *a, const explain_way *b) {
    return a->what == b->what && a->ranks == b->ranks && a->backend == b->backend &&
           a->algorithm == b->algorithm;
}

static void add_task(hp_arena *arena, const hp_program *p, const hp_role *r, const hp_task *t,
                     explain_way **way, int *n, int *capacity) {
    const hp_queue *q = &r->queue[t->queue];
    const int64_t bytes = hp_task_bytes(t);
    const explain_way new = {.what = hp_task_collective(t),
                             .ranks = hp_group_size(p, q->peer),
                             .backend = q->backend,
                             .algorithm = (hp_algorithm)t->algorithm,
                             .least = bytes,
                             .most = bytes};
    int i = 0;
    while (i < *n && !is_like(&(*way)[i], &new)) i++;
    if (i == *n) {
        HP_ROOM(arena, *way, *n, *capacity);
        (*way)[(*n)++] = new;
    }
    explain_way *w = &(*way)[i];
    if (bytes < w->least) w->least = bytes;
    if (bytes > w->most) w->most = bytes;
}

int explain_ways(hp_arena *arena, const hp_program *p, explain_way **way) {
    int n = 0, capacity = 0;
    *way = NULL;
    for (int r = 0; r < p->n_role; r++)
        for (int t = 0; t < p->role[r].n_task; t++)
            if (hp_task_is_collective(&p->role[r].task[t]))
                add_task(arena, p, &p->role[r], &p->role[r].task[t], way, &n, &capacity);
    if (n) qsort(*way, (size_t)n, sizeof **way, ways_compare);
    return n;
}

bool explain_goes_on(const explain_way *way, int i) {
    return i > 0 && way[i].what == way[i - 1].what && way[i].ranks == way[i - 1].ranks;
}

const char *explain_way_name(const explain_way *w, char *out) {
    snprintf(out, EXPLAIN_NAME, "%s%s%s", hp_backend_names[w->backend], w->algorithm ? "." : "",
             w->algorithm ? hp_algorithms[w->algorithm]->name : "");
    return out;
}
