/* search.c - looks at every point of the space (search_points.c). Lowering and simulating takes a millisecond
 * to a second and is reserved for promising points: best first, with lower bounds to stop at (as in branch
 * and bound; Calculon, Isaev et al. 2023, evaluates all). */
#include "sim/search/search.h"

#include "base/parallel.h"
#include "sim/search/found.h"

#include <stdlib.h>

enum {
    /* Tasks of large programs that are simulated: some seconds. Small programs are cheap to rule out: they
     * get as many tasks as a space of 5,000 strategies has. */
    LARGE_BUDGET = 800000,
    SMALL_BUDGET = 32000000,
    LARGEST = 1000000, /* tasks of one program: about 1.5 GB during evaluation */
    PATIENCE = 2,      /* times the budget, while nothing fits */
    WAVE = 4           /* points evaluated before their results are compared */
};

/* One point of a wave, evaluated on some thread. */
typedef struct trial {
    hp_scored_point at;
    hp_evaluation e;
    int64_t tasks; /* tasks lowered for it, including a first cut that was too large */
    hp_status status;
    hp_error err;
} trial;

typedef struct wave {
    found *f;
    trial trial[WAVE];
    int n;
    int64_t tasks; /* tasks of its large programs */
} wave;

/* Is a candidate with this lower bound useless? Large programs are simulated only to find the best one. */
static bool hopeless(const found *f, const hp_scored_point *p, bool large) {
    if (f->r->n == 0 || (!large && f->r->n < f->o->top)) return false;
    const hp_evaluation *limit = &f->r->best[large ? 0 : f->r->n - 1];
    return p->bound > hp_search_value(limit, f->o->sort) * (1 + 1e-9);
}

static bool may_cut_otherwise(const hp_point *p) {
    return p->stages * p->chunks > 1 && p->cut == HP_CUT_TIME;
}

/* Placing the buffers of a large program costs more than simulating it, so only a possible best gets it. */
static hp_status try_point(const found *f, hp_search_worker *w, const hp_point *p, bool large,
                           hp_evaluation *e, hp_error *err) {
    const hp_strategy s = hp_points_strategy(w->eval, p);
    const hp_eval_depth depth = f->o->sort == HP_SORT_MEMORY ? HP_EVAL_FITS : HP_EVAL_RANK;
    if (large && depth == HP_EVAL_RANK) {
        HP_TRY(hp_evaluate(w->eval, w->arena, &s, HP_EVAL_QUICK, e, err));
        if (e->reject.code ||
            (f->r->n && hp_search_value(e, f->o->sort) > hp_search_value(&f->r->best[0], f->o->sort)))
            return HP_OK;
    }
    return hp_evaluate(w->eval, w->arena, &s, depth, e, err);
}

static void evaluate(void *self, int thread, int i) {
    wave *w = self;
    trial *t = &w->trial[i];
    hp_search_worker *worker = &w->f->worker[thread];
    hp_point p = t->at.p;
    const bool large = hp_points_large(w->f->space, &t->at);
    t->status = try_point(w->f, worker, &p, large, &t->e, &t->err);
    t->tasks = t->e.tasks;
    if (t->status != HP_OK || !t->e.reject.code || !may_cut_otherwise(&p)) return;
    p.cut = HP_CUT_MEMORY;
    t->status = try_point(w->f, worker, &p, large, &t->e, &t->err);
    t->tasks += t->e.tasks;
}

static void add_trial(wave *w, const hp_scored_point *p, int64_t tasks) {
    w->trial[w->n++].at = *p;
    w->tasks += tasks;
}

/* At most two large programs are in memory at once. */
static bool is_full(const wave *w) {
    return w->n == WAVE || w->tasks > LARGEST / 2;
}

static hp_status run_wave(wave *w, int64_t spent[2], hp_error *err) {
    found *f = w->f;
    hp_parallel_for(f->n_worker, w->n, evaluate, w);
    for (int i = 0; i < w->n; i++) {
        trial *t = &w->trial[i];
        if (t->status != HP_OK) {
            *err = t->err;
            return t->status;
        }
        spent[hp_points_large(f->space, &t->at)] += t->tasks;
        found_add(f, &t->e, t->at.order);
    }
    w->n = 0;
    w->tasks = 0;
    return HP_OK;
}

typedef struct budget {
    int64_t tasks[2]; /* for small and for large programs; a large one costs as much as many small ones */
    int64_t spent[2];
} budget;

static budget budget_of(const hp_search_options *o) {
    const int64_t half = o->budget < INT64_MAX / 2 ? o->budget / 2 : INT64_MAX / 4;
    return o->budget ? (budget){.tasks = {half, half}} : (budget){.tasks = {SMALL_BUDGET, LARGE_BUDGET}};
}

/* Evaluates the points in their order. Points beyond the budget move to the front of the list, *n_later of
 * them. */
static hp_status evaluate_points(found *f, hp_points *points, budget *b, int *n_later, hp_error *err) {
    wave w = {.f = f};
    *n_later = 0;
    for (int i = 0; i < points->n; i++) {
        const hp_scored_point p = points->list[i];
        const bool large = hp_points_large(f->space, &p);
        const int64_t tasks = large ? hp_space_tasks(f->space, &p.p) : 0;
        if (hopeless(f, &p, large))
            found_rule_out(f, &p);
        else if (hp_search_stopped(f->o) || tasks > LARGEST || b->spent[large] + tasks > b->tasks[large])
            points->list[(*n_later)++] = p;
        else
            add_trial(&w, &p, tasks);
        if (is_full(&w) || (w.n && i + 1 == points->n)) HP_TRY(run_wave(&w, b->spent, err));
        found_tell(f, "candidates", i + 1, points->n);
    }
    return HP_OK;
}

static int by_memory(const void *a, const void *b) {
    const hp_scored_point *x = a, *y = b;
    if (x->likely_bytes < y->likely_bytes || x->likely_bytes > y->likely_bytes)
        return x->likely_bytes < y->likely_bytes ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* The budget is spent. While nothing fits, points with the smallest need are still tried, up to several times
 * the budget; the others stay open. */
static hp_status evaluate_later(found *f, hp_points *points, budget *b, int n, hp_error *err) {
    wave w = {.f = f};
    const int64_t most = (b->tasks[0] + b->tasks[1]) * PATIENCE;
    if (n && !f->r->n) qsort(points->list, (size_t)n, sizeof *points->list, by_memory);
    for (int i = 0; i < n; i++) {
        const hp_scored_point *p = &points->list[i];
        const int64_t tasks = hp_space_tasks(f->space, &p->p);
        const bool spent = tasks > LARGEST || b->spent[0] + b->spent[1] + tasks > most;
        if (f->r->n || spent || hp_search_stopped(f->o)) {
            found_leave_open(f, p);
            continue;
        }
        add_trial(&w, p, tasks);
        HP_TRY(run_wave(&w, b->spent, err));
        found_tell(f, "candidates", i + 1, n);
    }
    return HP_OK;
}

static hp_status search_space(found *f, const hp_space *space, hp_error *err) {
    hp_points points;
    budget b = budget_of(f->o);
    int n_later;
    f->space = space;
    HP_TRY(hp_points_score(f->arena, space, f->o, f->worker, f->n_worker, &points, err));
    f->r->searched += points.searched;
    f->short_of_memory |= points.short_of_memory;
    HP_TRY(evaluate_points(f, &points, &b, &n_later, err));
    return evaluate_later(f, &points, &b, n_later, err);
}

static hp_status last_resort(found *f, hp_error *err) {
    hp_evaluation e;
    HP_TRY(hp_search_any_strips(f->arena, f->worker[0].eval, f->space, &e, &f->r->searched, err));
    if (e.n_role) found_add(f, &e, 0);
    return HP_OK;
}

static hp_status search_all(found *f, const hp_space *space, const hp_space *strips, hp_error *err) {
    HP_TRY(search_space(f, space, err));
    if (!space->graph->deployed) return HP_OK;
    if (f->short_of_memory || f->o->sort == HP_SORT_MEMORY) HP_TRY(search_space(f, strips, err));
    f->space = space;
    return f->short_of_memory && !f->r->n ? last_resort(f, err) : HP_OK;
}

hp_status hp_search(hp_arena *arena, const hp_eval_setup *setup, const hp_space *space,
                    const hp_search_options *o, hp_search_result *result, hp_error *err) {
    *result = (hp_search_result){0};
    hp_space strips = *space;
    strips.strips = true;
    found f = found_new(arena, setup, space, o, result);
    hp_status status = search_all(&f, space, &strips, err);
    if (status == HP_OK) status = found_finish(&f, err);
    result->stopped = hp_search_stopped(o);
    found_free(&f);
    return status;
}
