/* check.c - compares runs row by row in benchstat's style, and judges each row. */
#include "traces/check/check.h"
#include "traces/check/compare.h"
#include "traces/check/ranktest.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

const char *const hp_verdict_names[] = {"ok", "better", "regression", "info"};

/* --- loading --- */

static hp_status largest(hp_arena *arena, hp_db *db, int64_t run, hp_counter which, double *out,
                         hp_error *err) {
    hp_trace_value *v = NULL;
    int64_t n = 0;
    HP_TRY(hp_trace_counter(arena, db, run, hp_counter_names[which], &v, &n, err));
    *out = NAN;
    for (int64_t i = 0; i < n; i++) *out = fmax(*out, v[i].value); /* fmax ignores NaN */
    return HP_OK;
}

static hp_status last_loss(hp_arena *arena, hp_db *db, int64_t run, hp_check_side *s, hp_error *err) {
    hp_trace_value *v = NULL;
    int64_t n = 0, ranks = 0;
    HP_TRY(hp_trace_counter(arena, db, run, hp_counter_names[HP_COUNTER_LOSS], &v, &n, err));
    double sum = 0;
    for (int64_t i = n - 1; i >= 0 && v[i].iter == v[n - 1].iter && v[i].iter >= 0; i--, ranks++)
        sum += v[i].value;
    s->has_loss = ranks > 0;
    s->final_loss = ranks ? sum / (double)ranks : NAN;
    return HP_OK;
}

static hp_status load_newest(hp_arena *arena, hp_db *db, hp_check_side *s, hp_error *err) {
    int64_t run = -1;
    HP_TRY(hp_trace_find(db, "exec", &run, err));
    if (run < 0)
        return hp_fail(err, HP_EDATA, "%s: holds no executed run; `hplan run %s` makes one", db->path,
                       db->path);
    HP_TRY(hp_trace_load(arena, db, run, false, &s->trace, err));
    HP_TRY(largest(arena, db, run, HP_COUNTER_PLANNED, &s->planned_bytes, err));
    HP_TRY(largest(arena, db, run, HP_COUNTER_PEAK, &s->peak_bytes, err));
    return last_loss(arena, db, run, s, err);
}

hp_status hp_check_load(hp_arena *arena, const char *path, hp_check_side *s, hp_error *err) {
    hp_db db;
    HP_TRY(hp_db_open(path, &db, err));
    const hp_status status = load_newest(arena, &db, s, err);
    hp_db_close(&db);
    return status;
}

/* --- judging --- */

static void summarize(double *v, int n, double *median, double *spread) {
    gsl_sort(v, 1, (size_t)n);
    *median = gsl_stats_median_from_sorted_data(v, 1, (size_t)n);
    const double q1 = gsl_stats_quantile_from_sorted_data(v, 1, (size_t)n, 0.25);
    const double q3 = gsl_stats_quantile_from_sorted_data(v, 1, (size_t)n, 0.75);
    *spread = *median > 0 ? (q3 - q1) / 2 / *median : 0;
}

static double relative(double old, double new) {
    if (old > 0) return new / old - 1;
    return new > 0 ? INFINITY : 0;
}

static hp_verdict judge_row(double delta, double p, double limit) {
    if (isnan(limit)) return HP_VERDICT_INFO;
    if (!isnan(p) && p >= HP_COMPARE_ALPHA) return HP_VERDICT_SAME;
    if (delta > limit) return HP_VERDICT_REGRESSION;
    return delta < -limit ? HP_VERDICT_BETTER : HP_VERDICT_SAME;
}

static hp_check_row time_row(const char *name, double *old, int n_old, double *new, int n_new, double limit) {
    hp_check_row r = {.name = name, .unit = HP_CHECK_SECONDS, .limit = limit};
    r.p = hp_mann_whitney(old, n_old, new, n_new);
    summarize(old, n_old, &r.old_median, &r.old_spread);
    summarize(new, n_new, &r.new_median, &r.new_spread);
    r.delta = relative(r.old_median, r.new_median);
    r.verdict = judge_row(r.delta, r.p, limit);
    return r;
}

static double *phase_samples(hp_arena *arena, const hp_trace *t, int phase) {
    int32_t *group = HP_NEW(arena, int32_t, t->n_task);
    for (int i = 0; i < t->n_task; i++) group[i] = t->task[i].phase == phase ? 0 : -1;
    return hp_trace_totals(arena, t, group, 1);
}

static bool phase_is_judged(int phase) {
    return phase != HP_PHASE_TRANSFER && phase != HP_PHASE_REDUCE;
}

static int compare_p(const void *a, const void *b) {
    const double x = (*(hp_check_row *const *)a)->p, y = (*(hp_check_row *const *)b)->p;
    return (x > y) - (x < y);
}

/* Holm 1979 compares the i-th smallest of n p values with alpha / (n - i); here the p values are multiplied
 * instead. */
static void correct_holm(hp_check_row **rows, int n) {
    qsort(rows, (size_t)n, sizeof *rows, compare_p);
    double largest_p = 0;
    for (int i = 0; i < n; i++) {
        largest_p = fmax(largest_p, fmin(1, rows[i]->p * (n - i)));
        rows[i]->p = largest_p;
    }
}

static void judge_phases(hp_check_row *row, int n, double step_s) {
    hp_check_row *judged[HP_PHASES + 1];
    int n_judged = 0;
    for (int i = 0; i < n; i++)
        if (!isnan(row[i].limit)) judged[n_judged++] = &row[i];
    correct_holm(judged, n_judged);
    for (int i = 0; i < n_judged; i++) {
        hp_check_row *r = judged[i];
        r->verdict = judge_row(r->delta, r->p, r->limit);
        if (fabs(r->new_median - r->old_median) < HP_CHECK_MIN_SHARE * step_s) r->verdict = HP_VERDICT_SAME;
    }
}

static void add_times(hp_arena *arena, const hp_trace *old, const hp_trace *new, double limit, hp_check *c) {
    c->row[c->n_row++] =
        time_row("step", hp_trace_steps(arena, old), c->n_old, hp_trace_steps(arena, new), c->n_new, limit);
    const double step_s = c->row[0].old_median;
    hp_check_row *phases = c->row + c->n_row;
    int n = 0;
    for (int i = 0; i < HP_PHASES; i++) {
        phases[n] = time_row(hp_phase_names[i], phase_samples(arena, old, i), c->n_old,
                             phase_samples(arena, new, i), c->n_new, phase_is_judged(i) ? limit : NAN);
        n += phases[n].old_median > 0 || phases[n].new_median > 0;
    }
    phases[n++] = time_row("waiting", hp_trace_waiting(arena, old), c->n_old, hp_trace_waiting(arena, new),
                           c->n_new, NAN);
    judge_phases(phases, n, step_s);
    c->n_row += n;
}

static void add_plain(hp_check *c, const char *name, hp_check_unit unit, double old, double new, double limit,
                      bool absolute) {
    hp_check_row r = {
        .name = name, .unit = unit, .old_median = old, .new_median = new, .p = NAN, .limit = limit};
    r.delta_absolute = absolute;
    r.delta = absolute ? new - old : relative(old, new);
    r.verdict = judge_row(r.delta, NAN, limit);
    if (!isnan(limit) && isfinite(old) && !isfinite(new)) r.verdict = HP_VERDICT_REGRESSION;
    c->row[c->n_row++] = r;
}

/* The smallest p any data of these sizes can give: all of one side below all of the other. */
static double smallest_p(hp_arena *arena, int n_old, int n_new) {
    double *v = HP_NEW(arena, double, n_old + n_new);
    for (int i = 0; i < n_old + n_new; i++) v[i] = i;
    return hp_mann_whitney(v, n_old, v + n_old, n_new);
}

hp_status hp_check_run(hp_arena *arena, hp_check_side *old_side, hp_check_side *new_side,
                       const hp_check_limits *limits, hp_check *c, hp_error *err) {
    memset(c, 0, sizeof *c);
    hp_trace *old = &old_side->trace, *new = &new_side->trace;
    if (old->n_iter == 0 || new->n_iter == 0)
        return hp_fail(err, HP_EDATA, "the %s has no complete step to judge; run it with more --steps",
                       old->n_iter == 0 ? "baseline" : "run");
    c->warmup_old = hp_trace_drop_warmup(old);
    c->warmup_new = hp_trace_drop_warmup(new);
    c->n_old = old->n_iter;
    c->n_new = new->n_iter;
    c->plans_differ = strcmp(old->plan_hash, new->plan_hash) != 0;
    c->row = HP_NEW(arena, hp_check_row, HP_PHASES + 5); /* step, phases, waiting, two of memory, loss */
    add_times(arena, old, new, limits->max_slowdown, c);
    if (!isnan(old_side->planned_bytes) && !isnan(new_side->planned_bytes))
        add_plain(c, "planned memory", HP_CHECK_BYTES, old_side->planned_bytes, new_side->planned_bytes,
                  limits->max_memory, false);
    if (!isnan(old_side->peak_bytes) && !isnan(new_side->peak_bytes))
        add_plain(c, "peak memory", HP_CHECK_BYTES, old_side->peak_bytes, new_side->peak_bytes,
                  limits->max_memory, false);
    if (old_side->has_loss && new_side->has_loss)
        add_plain(c, "final loss", HP_CHECK_PLAIN, old_side->final_loss, new_side->final_loss,
                  limits->max_loss_drift, !limits->loss_relative);
    for (int i = 0; i < c->n_row; i++) c->n_regression += c->row[i].verdict == HP_VERDICT_REGRESSION;
    c->too_few = smallest_p(arena, c->n_old, c->n_new) >= HP_COMPARE_ALPHA;
    return HP_OK;
}
