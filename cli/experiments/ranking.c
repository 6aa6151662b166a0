/* ranking.c - is the best strategy of a publication also predicted to be the best of those it compared? */
#include "cli/experiments/experiments.h"

#include "plan/strategy/family.h"

#include <string.h>

static bool in_group(const experiment_row *r, const char *group) {
    return r->group && strcmp(r->group, group) == 0;
}

/* The fastest of a group; NULL if none of them has a time. A strategy that does not fit counts as slowest. */
static const experiment_row *fastest(const experiment_file *f, const char *group, const experiment_run *run) {
    const experiment_row *best = NULL;
    double most = 0;
    for (int i = 0; i < f->n; i++) {
        const double rate = run[i].figure[EXPERIMENT_images_per_s];
        if (!in_group(&f->row[i], group) || !(rate > most)) continue;
        most = rate;
        best = &f->row[i];
    }
    return best;
}

static bool is_spatial(const hp_strategy *s) {
    const hp_family f = hp_family_of(s);
    return f >= HP_FAMILY_SPATIAL && f <= HP_FAMILY_SPATIAL_GEMS;
}

static void describe(experiment_ranking *r) {
    hp_strategy s;
    hp_error ignored;
    const char *text = r->published->options.strategy;
    if (!text || hp_strategy_parse(text, &s, &ignored) != HP_OK) return;
    r->data = hp_strategy_is_plain(&s);
    r->spatial = is_spatial(&s);
}

int experiment_rank(hp_arena *arena, const experiment_book *b, experiment_run *const *run,
                    experiment_run *const *roofline, experiment_ranking **list) {
    int n = 0, capacity = 0;
    *list = NULL;
    for (int k = 0; k < b->n; k++) {
        const experiment_file *f = &b->file[k];
        for (int i = 0; i < f->n; i++) {
            if (!f->row[i].best) continue;
            const char *group = f->row[i].group;
            experiment_ranking r = {.file = f, .group = group, .published = &f->row[i]};
            r.predicted = fastest(f, group, run[k]);
            r.roofline = fastest(f, group, roofline[k]);
            describe(&r);
            HP_ROOM(arena, *list, n, capacity);
            (*list)[n++] = r;
        }
    }
    return n;
}
