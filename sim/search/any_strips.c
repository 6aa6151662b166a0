/* any_strips.c - the last resort if memory is short: tries any number of strips until one fits. */
#include "sim/search/search.h"

#include <stdlib.h>

enum {
    BUDGET = 4000000, /* limit on tasks lowered and placed in total: some ten seconds */
    MOST_TASKS = 1600000
};

typedef struct choice {
    hp_point p;
    double bytes; /* at least */
    int order;
} choice;

static int by_bytes(const void *a, const void *b) {
    const choice *x = a, *y = b;
    if (x->bytes < y->bytes || x->bytes > y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Lists legal choices that are small enough as far as can be told without lowering. */
static hp_status list_choices(hp_eval *e, const hp_space *space, choice *choices, const hp_point *list, int n,
                              int *kept, hp_error *err) {
    const hp_eval_setup *setup = hp_eval_get(e);
    for (int i = 0; i < n; i++) {
        const hp_strategy s = hp_space_strategy(&list[i]);
        hp_estimate out;
        if (!hp_rules_allow(setup->rules, &s, space->graph, space->batch, space->n_devices, NULL) ||
            hp_space_tasks(space, &list[i]) > MOST_TASKS)
            continue;
        HP_TRY(hp_eval_estimate(e, &s, &out, err));
        if (out.memory_bytes > (double)hp_eval_limit(e, &s).rank_bytes) continue;
        choices[(*kept)++] = (choice){list[i], out.memory_bytes, i};
    }
    return HP_OK;
}

static hp_status fits(hp_eval *e, const hp_strategy *s, bool *fit, int64_t *spent, hp_error *err) {
    hp_arena *scratch = hp_arena_new();
    hp_evaluation v;
    const hp_status status = hp_evaluate(e, scratch, s, HP_EVAL_FITS, &v, err);
    hp_arena_free(scratch);
    *fit = status == HP_OK && !v.reject.code;
    *spent += v.tasks;
    return status;
}

hp_status hp_search_any_strips(hp_arena *arena, hp_eval *e, const hp_space *space, hp_evaluation *found,
                               int64_t *searched, hp_error *err) {
    hp_space any = *space;
    hp_point *list;
    int n = 0;
    any.strips = any.any_strips = true;
    *found = (hp_evaluation){.n_role = 0};
    const int points = hp_space_list(arena, &any, &list);
    choice *choices = HP_NEW(arena, choice, points + 1);
    *searched += points;
    HP_TRY(list_choices(e, &any, choices, list, points, &n, err));
    if (n) qsort(choices, (size_t)n, sizeof *choices, by_bytes);
    int64_t spent = 0;
    for (int i = 0; i < n && spent < BUDGET; i++) {
        const hp_strategy s = hp_space_strategy(&choices[i].p);
        bool fit;
        HP_TRY(fits(e, &s, &fit, &spent, err));
        if (fit) return hp_evaluate(e, arena, &s, HP_EVAL_PLACED, found, err);
    }
    return HP_OK;
}
