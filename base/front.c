/* front.c - Pareto front over three objectives. Points are visited by increasing memory; each is compared
 * with the fastest earlier point for every number of devices. */
#include "base/front.h"

#include <math.h>
#include <stdlib.h>

typedef struct ranked {
    const hp_front_point *p;
    int index;
} ranked;

static bool is_point(const hp_front_point *p) {
    return p->gpus >= 0 && isfinite(p->images_per_s) && p->images_per_s > 0 && isfinite(p->memory_bytes) &&
           p->memory_bytes > 0;
}

/* Sorts possible dominators first: less memory, then more images/s, fewer devices, original order. */
static int compare(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->p->memory_bytes != y->p->memory_bytes) return x->p->memory_bytes < y->p->memory_bytes ? -1 : 1;
    if (x->p->images_per_s != y->p->images_per_s) return x->p->images_per_s > y->p->images_per_s ? -1 : 1;
    if (x->p->gpus != y->p->gpus) return x->p->gpus < y->p->gpus ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* For each number of devices, only the fastest earlier point matters: it also uses the fewest device
 * hours. */
static bool is_beaten(const hp_front_point *p, const hp_front_point *const *fastest, int n) {
    for (int i = 0; i < n; i++)
        if (fastest[i]->images_per_s >= p->images_per_s &&
            fastest[i]->gpus * p->images_per_s <= p->gpus * fastest[i]->images_per_s)
            return true;
    return false;
}

static void remember(const hp_front_point *p, const hp_front_point **fastest, int *n) {
    int k = 0;
    while (k < *n && fastest[k]->gpus != p->gpus) k++;
    if (k == *n || fastest[k]->images_per_s < p->images_per_s) fastest[k] = p;
    if (k == *n) ++*n;
}

int hp_front(hp_arena *arena, const hp_front_point *p, int n, int *front) {
    ranked *list = HP_NEW(arena, ranked, n + 1);
    const hp_front_point **fastest = HP_NEW(arena, const hp_front_point *, n + 1);
    int n_list = 0, n_fastest = 0, n_front = 0;
    for (int i = 0; i < n; i++)
        if (is_point(&p[i])) list[n_list++] = (ranked){&p[i], i};
    if (n_list) qsort(list, (size_t)n_list, sizeof *list, compare);
    for (int i = 0; i < n_list; i++) {
        if (is_beaten(list[i].p, fastest, n_fastest)) continue;
        front[n_front++] = list[i].index;
        remember(list[i].p, fastest, &n_fastest);
    }
    return n_front;
}
