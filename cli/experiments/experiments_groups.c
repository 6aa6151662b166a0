/* experiments_groups.c - time points by file and in total: errors, ranking, and coverage of their
 * intervals. */
#include "cli/experiments/experiments.h"

#include <math.h>

enum { RANKED = 10 }; /* fewer rates are in order by chance */

/* Points of a run's own step have its interval; ratios of two runs have none. */
static score_interval interval_of(const experiment_row *r, int row, const experiment_run *run,
                                  const experiment_result *x) {
    const experiment_run *of = &run[r->first >= 0 ? r->first : row];
    const bool step = r->measure == EXPERIMENT_step_s, rate = r->measure == EXPERIMENT_images_per_s;
    if (r->second >= 0 || (!step && !rate)) return (score_interval){0};
    /* interval of the step, which is shorter by as much as the rate is higher */
    return (score_interval){of->step_low, of->step_high, step ? r->low / x->value : x->value / r->low};
}

typedef struct points {
    int n, rates;
    double *published, *simulated; /* rates */
    score_interval *interval;
} points;

static void add(const experiment_file *f, int row, const experiment_run *run, experiment_group *g,
                points *p) {
    const experiment_row *r = &f->row[row];
    const experiment_result x = experiment_judge(f, row, run);
    if (!experiment_is_point_of_time(r) || isnan(x.error)) return;
    p->interval[p->n++] = interval_of(r, row, run, &x);
    g->used += r->used && f->in_table;
    g->hit += x.verdict == EXPERIMENT_HIT;
    g->error += fabs(x.error);
    if (r->measure != EXPERIMENT_images_per_s || r->second >= 0) return;
    p->published[p->rates] = r->low;
    p->simulated[p->rates++] = x.value;
}

experiment_group experiment_group_of(int n, const experiment_file *f, experiment_run *const *run) {
    hp_arena *arena = hp_arena_new();
    experiment_group g = {.name = n == 1 ? f->name : "all"};
    int rows = 0;
    for (int k = 0; k < n; k++) rows += f[k].n;
    points p = {.published = HP_NEW(arena, double, rows),
                .simulated = HP_NEW(arena, double, rows),
                .interval = HP_NEW(arena, score_interval, rows)};
    for (int k = 0; k < n; k++)
        for (int i = 0; i < f[k].n; i++) add(&f[k], i, run[k], &g, &p);
    g.points = p.n;
    g.tau = n == 1 && p.rates >= RANKED ? score_tau(p.rates, p.published, p.simulated) : NAN;
    g.coverage = score_cover(p.n, p.interval);
    hp_arena_free(arena);
    return g;
}

int experiment_groups(hp_arena *arena, const experiment_book *b, experiment_run *const *run,
                      experiment_group **list) {
    int n = 0;
    *list = HP_NEW(arena, experiment_group, b->n);
    for (int k = 0; k < b->n; k++) {
        const experiment_group g = experiment_group_of(1, &b->file[k], &run[k]);
        if (g.points) (*list)[n++] = g;
    }
    return n;
}
