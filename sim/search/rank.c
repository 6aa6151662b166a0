/* rank.c - the one ranking of candidates. */
#include "sim/search/found.h"

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

/* Candidates of several batches are compared by images, not by seconds. */
static double rank_value(const hp_evaluation *e, hp_sort sort) {
    return sort == HP_SORT_IMAGES ? -e->figures.images_per_s : found_value(e, sort);
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
        const hp_candidate *before = i ? &list[i - 1].figures : NULL, *c = &list[i].figures;
        list[i].figures.tie = before && before->gpus == c->gpus && before->step_low_s <= c->step_high_s &&
                              c->step_low_s <= before->step_high_s;
    }
    hp_arena_free(scratch);
}
