/* found.c - the best candidates in order, the best of each family, and open ones; finally, all their
 * figures. */
#include "sim/search/found.h"

#include "sim/search/fix.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

found found_new(hp_arena *arena, const hp_eval_setup *setup, const hp_space *space,
                const hp_search_options *o, hp_search_result *r) {
    found f = {.arena = arena, .space = space, .o = o, .r = r};
    f.n_worker = o->threads > 1 ? o->threads : 1;
    f.worker = HP_NEW(arena, hp_search_worker, f.n_worker);
    for (int i = 0; i < f.n_worker; i++) {
        f.worker[i].arena = hp_arena_new();
        f.worker[i].eval = hp_eval_new(f.worker[i].arena, setup);
    }
    return f;
}

void found_free(found *f) {
    for (int i = 0; i < f->n_worker; i++) hp_arena_free(f->worker[i].arena);
}

/* Equal ones keep their order of arrival. */
static void keep(found *f, const hp_evaluation *e) {
    hp_search_result *r = f->r;
    const double value = hp_search_value(e, f->o->sort);
    int at = r->n;
    while (at > 0 && hp_search_value(&r->best[at - 1], f->o->sort) > value) at--;
    if (at >= f->o->top) return;
    HP_ROOM(f->arena, r->best, r->n, f->capacity);
    memmove(&r->best[at + 1], &r->best[at], sizeof *r->best * (size_t)(r->n - at));
    r->best[at] = *e;
    if (++r->n > f->o->top) r->n = f->o->top;
}

static void keep_family(found *f, const hp_evaluation *e) {
    hp_evaluation *best = &f->best_of[hp_family_of(&e->strategy)];
    if (best->n_role && hp_search_value(best, f->o->sort) <= hp_search_value(e, f->o->sort)) return;
    *best = *e;
}

void found_add(found *f, const hp_evaluation *e, int order) {
    if (e->reject.code) {
        f->short_of_memory = true;
        hp_tally_add(&f->tally, &e->reject, &(hp_miss){&e->strategy, (double)e->figures.memory_bytes, order});
        return;
    }
    f->r->valid++;
    f->r->simulated++;
    keep(f, e);
    keep_family(f, e);
}

static void note_bound(found *f, const hp_scored_point *p) {
    double *bound = &f->bound_of[p->family];
    if (*bound <= 0 || p->bound < *bound) *bound = p->bound;
}

void found_rule_out(found *f, const hp_scored_point *p) {
    f->r->valid++;
    f->r->cut_off++;
    note_bound(f, p);
}

static void remember_open(found *f, const hp_scored_point *p) {
    int at = f->n_open;
    if (p->turn > 1) return;
    while (at > 0 && p->promise < f->open[at - 1].promise) at--;
    if (at == HP_OPEN_LISTED) return;
    if (f->n_open < HP_OPEN_LISTED) f->n_open++;
    for (int i = f->n_open - 1; i > at; i--) f->open[i] = f->open[i - 1];
    f->open[at] = *p;
}

void found_leave_open(found *f, const hp_scored_point *p) {
    hp_search_result *r = f->r;
    if (r->n && p->bound > hp_search_value(&r->best[0], f->o->sort) * (1 + 1e-9)) {
        found_rule_out(f, p);
        return;
    }
    note_bound(f, p);
    r->valid++;
    if (!r->open++ || p->bound < r->open_bound) r->open_bound = p->bound;
    remember_open(f, p);
}

double hp_search_gap(const hp_search_result *r, hp_sort sort) {
    if (!r->open || !r->n) return 0;
    const double best = hp_search_value(&r->best[0], sort);
    return best > r->open_bound ? 1 - r->open_bound / best : 0;
}

void found_tell(const found *f, const char *phase, int64_t done, int64_t total) {
    if (!f->o->progress) return;
    const hp_search_progress p = {phase, done, total, f->r->n ? &f->r->best[0] : NULL};
    f->o->progress(f->o->self, &p);
}

/* --- at the end --- */

static bool is_listed(const found *f, const hp_strategy *s) {
    for (int i = 0; i < f->r->n; i++)
        if (hp_strategy_equal(&f->r->best[i].strategy, s)) return true;
    return false;
}

static void list(found *f, const hp_evaluation *e) {
    if (is_listed(f, &e->strategy)) return;
    HP_ROOM(f->arena, f->r->best, f->r->n, f->capacity);
    f->r->best[f->r->n++] = *e;
}

static hp_eval *eval_of(const found *f) {
    return f->worker[0].eval;
}

static void set_rejected(hp_rejected *r, const hp_tally_row *row) {
    r->code = row->why.code;
    r->count = row->count;
    hp_strategy_text(&row->example, r->example);
    memcpy(r->limit, row->why.limit, sizeof r->limit);
    memcpy(r->fix, row->why.fix, sizeof r->fix);
}

/* No change to the example helps, but a strategy of the search fits. */
static void name_another(const found *f, hp_reject *why) {
    char bytes[32];
    if (f->r->n == 0 || strncmp(why->fix, HP_FIX_NONE, sizeof HP_FIX_NONE - 1) != 0) return;
    const hp_evaluation *best = &f->r->best[0];
    snprintf(why->fix, sizeof why->fix, "another strategy: %.90s -> %s", best->figures.strategy,
             hp_format_bytes((double)best->figures.memory_bytes, bytes));
}

/* Gives the example a fix that was tried. */
static hp_status explain(found *f, hp_tally_row *row, hp_rejected *r, hp_error *err) {
    if (hp_search_stopped(f->o)) {
        snprintf(row->why.fix, sizeof row->why.fix, "not looked for: the search was stopped");
        set_rejected(r, row);
        return HP_OK;
    }
    const hp_question q = hp_eval_question(eval_of(f), &row->example, f->space->n_devices);
    HP_TRY(hp_search_fix(eval_of(f), &q, HP_FIX_QUICK, &row->why, err));
    name_another(f, &row->why);
    set_rejected(r, row);
    return HP_OK;
}

/* Adds plain data parallelism, if the devices allow it. */
static hp_status add_plain(found *f, hp_error *err) {
    hp_tally_row row = {.count = 1};
    hp_evaluation e;
    hp_strategy *s = &row.example;
    *s = hp_strategy_default();
    s->dp = f->space->n_devices;
    s->prec = f->space->graph->prec;
    HP_TRY(hp_evaluate(eval_of(f), f->arena, s, HP_EVAL_RANK, &e, err));
    if (!e.reject.code) {
        list(f, &e);
        return HP_OK;
    }
    row.why = e.reject;
    return explain(f, &row, &f->r->plain, err);
}

static bool is_best_of_family(const found *f, const hp_evaluation *e) {
    return hp_strategy_equal(&f->best_of[hp_family_of(&e->strategy)].strategy, &e->strategy);
}

/* Three simulations of a large program take too long if it resembles another one. */
static void drop_large(found *f) {
    int n = 0;
    for (int i = 0; i < f->r->n; i++) {
        const hp_evaluation *e = &f->r->best[i];
        const bool worth_it = f->o->all_of_top || is_best_of_family(f, e);
        if (i == 0 || e->tasks <= HP_LARGE_TASKS || (worth_it && !hp_search_stopped(f->o)))
            f->r->best[n++] = *e;
    }
    f->r->n = n;
}

/* Chooses back ends. For a large program, it assumes that memory is never reused, which takes a third of the
 * time. */
static hp_status choose_backends(found *f, hp_evaluation *e, hp_error *err) {
    hp_evaluation quick;
    if (e->tasks <= HP_LARGE_TASKS) return hp_search_backends(eval_of(f), f->arena, HP_EVAL_PLACED, e, err);
    HP_TRY(hp_evaluate(eval_of(f), f->arena, &e->strategy, HP_EVAL_QUICK, &quick, err));
    HP_TRY(hp_search_backends(eval_of(f), f->arena, HP_EVAL_QUICK, &quick, err));
    if (hp_strategy_equal(&quick.strategy, &e->strategy)) return HP_OK;
    HP_TRY(hp_evaluate(eval_of(f), f->arena, &quick.strategy, HP_EVAL_PLACED, &quick, err));
    if (!quick.reject.code && quick.figures.step_s < e->figures.step_s) *e = quick;
    return HP_OK;
}

/* Computes all figures of the listed candidates. Chooses back ends for number 1 and for small programs. */
static hp_status complete(found *f, hp_error *err) {
    hp_search_result *r = f->r;
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        hp_evaluation e;
        if (i == 0 || r->best[i].tasks <= HP_LARGE_TASKS)
            HP_TRY(hp_search_uneven(eval_of(f), f->arena, &r->best[i], err));
        HP_TRY(hp_evaluate(eval_of(f), f->arena, &r->best[i].strategy, HP_EVAL_PLACED, &e, err));
        found_tell(f, "figures", i + 1, r->n);
        if (!e.reject.code) r->best[n++] = e;
    }
    r->n = n;
    hp_search_rank(r->best, n, f->o->sort);
    for (int i = 0; i < n; i++)
        if (i == 0 || r->best[i].tasks <= HP_LARGE_TASKS) HP_TRY(choose_backends(f, &r->best[i], err));
    hp_search_rank(r->best, n, f->o->sort);
    return HP_OK;
}

static void list_absent(found *f) {
    hp_search_result *r = f->r;
    r->absent = HP_NEW(f->arena, hp_absent, HP_FAMILIES);
    for (int k = 0; k < HP_FAMILIES; k++) {
        hp_tally_row *row = &f->tally.row[HP_TALLY_KINDS + k];
        if (f->best_of[k].n_role || (!row->count && f->bound_of[k] <= 0)) continue;
        hp_absent *a = &r->absent[r->n_absent++];
        *a = (hp_absent){.family = (hp_family)k, .bound = f->bound_of[k]};
        if (!row->count) continue;
        set_rejected(&a->nearest, row);
        a->nearest.fix[0] = '\0'; /* not tried */
    }
}

/* Lists open points that may still beat the best. */
static hp_status list_open(found *f, hp_error *err) {
    hp_search_result *r = f->r;
    const double best = r->n ? hp_search_value(&r->best[0], f->o->sort) : INFINITY;
    for (int i = 0; i < f->n_open; i++) {
        const hp_scored_point *p = &f->open[i];
        hp_estimate e;
        hp_open_strategy *o = &r->promising[r->n_promising];
        if (p->bound >= best) continue;
        *o = (hp_open_strategy){.strategy = hp_points_strategy(eval_of(f), &p->p),
                                .bound = p->bound,
                                .tasks = hp_space_tasks(f->space, &p->p)};
        HP_TRY(hp_eval_estimate(eval_of(f), &o->strategy, &e, err));
        o->estimate_s = e.estimate_s;
        o->memory_bytes = e.memory_bytes;
        r->n_promising++;
    }
    return HP_OK;
}

static hp_status list_rejects(found *f, hp_error *err) {
    hp_search_result *r = f->r;
    r->rejected = HP_NEW(f->arena, hp_rejected, HP_TALLY_KINDS);
    for (int k = 0; k < HP_TALLY_KINDS; k++)
        if (f->tally.row[k].count) HP_TRY(explain(f, &f->tally.row[k], &r->rejected[r->n_rejected++], err));
    return HP_OK;
}

hp_status found_finish(found *f, hp_error *err) {
    for (int i = 0; i < f->n_worker; i++) hp_tally_merge(&f->tally, &f->worker[i].tally);
    for (int k = 0; k < HP_FAMILIES; k++)
        if (f->best_of[k].n_role) list(f, &f->best_of[k]);
    drop_large(f);
    HP_TRY(add_plain(f, err));
    HP_TRY(complete(f, err));
    list_absent(f);
    HP_TRY(list_open(f, err));
    return list_rejects(f, err);
}
