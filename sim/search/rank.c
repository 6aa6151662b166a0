/* rank.c - the common ranking of candidates. */
#include "sim/search/search.h"

#include <stdlib.h>

typedef struct ranked {
    double value;
    int order;
} ranked;

static int ranked_compare(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->value < y->value || x->value > y->value) return x->value < y->value ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

double hp_search_value(const hp_evaluation *e, hp_sort sort) {
    if (sort == HP_SORT_MEMORY) return (double)e->figures.memory_bytes;
    return e->figures.step_s;
}

/* Candidates with different batches are compared by images, not by seconds. */
static double rank_value(const hp_evaluation *e, hp_sort sort) {
    return sort == HP_SORT_IMAGES ? -e->figures.images_per_s : hp_search_value(e, sort);
}

/* Prediction per sample, because batches may differ. */
static hp_predicted predicted(const hp_evaluation *e) {
    const double batch = e->figures.batch > 0 ? (double)e->figures.batch : 1;
    return (hp_predicted){e->figures.step_s / batch, e->uncertainty, &e->exposure};
}

bool hp_search_tie(const hp_evaluation *a, const hp_evaluation *b) {
    const hp_candidate *x = &a->figures, *y = &b->figures;
    const hp_predicted p = predicted(a), q = predicted(b);
    if (x->gpus != y->gpus) return false;
    if (x->rounds > 0 && y->rounds > 0)
        return x->measured_low_s <= y->measured_high_s && y->measured_low_s <= x->measured_high_s;
    return hp_interval_tie(&p, &q);
}

void hp_search_rank(hp_evaluation *list, int n, hp_sort sort) {
    hp_arena *scratch = hp_arena_new();
    ranked *key = HP_NEW(scratch, ranked, n);
    hp_evaluation *old = HP_NEW(scratch, hp_evaluation, n);
    for (int i = 0; i < n; i++) {
        key[i] = (ranked){rank_value(&list[i], sort), i};
        old[i] = list[i];
    }
    if (n) qsort(key, (size_t)n, sizeof *key, ranked_compare);
    for (int i = 0; i < n; i++) {
        list[i] = old[key[i].order];
        list[i].figures.tie = i > 0 && hp_search_tie(&list[i - 1], &list[i]);
    }
    hp_arena_free(scratch);
}
