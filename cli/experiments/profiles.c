/* profiles.c - the number of parameters that describe each framework, beside the number of points by which it
 * is judged. */
#include "cli/experiments/experiments.h"

#include <math.h>
#include <string.h>

static bool is_of(const experiment_file *f, const experiment_row *r, const char *framework) {
    const experiment_row *origin = experiment_origin(f, r);
    return r->kind == EXPERIMENT_POINT && origin && origin->options.costs.as &&
           strcmp(origin->options.costs.as, framework) == 0;
}

static void count(const experiment_file *f, const experiment_run *run, experiment_profile *p) {
    for (int i = 0; i < f->n; i++) {
        const experiment_result x = experiment_judge(f, i, run);
        if (isnan(x.error) || !is_of(f, &f->row[i], p->framework->name)) continue;
        p->points++;
        p->hit += x.verdict == EXPERIMENT_HIT;
        p->error += fabs(x.error);
    }
}

int experiment_profiles(hp_arena *arena, const experiment_book *b, experiment_run *const *run,
                        experiment_profile **list) {
    int n = 0, all = 0;
    while (hp_frameworks[all].name) all++;
    *list = HP_NEW(arena, experiment_profile, all);
    for (int k = 0; k < all; k++) {
        experiment_profile *p = &(*list)[n];
        *p = (experiment_profile){.framework = &hp_frameworks[k]};
        for (int i = 0; i < b->n; i++) count(&b->file[i], run[i], p);
        n += p->points > 0;
    }
    return n;
}
