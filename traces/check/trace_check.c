/* trace_check.c - compares runs row by row in benchstat's style, and judges each row. */
#include "traces/check/trace_check.h"
#include "traces/check/compare.h"
#include "traces/check/ranktest.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

const char *const hp_verdict_names[] = {"ok", "better", "regression", "info", "unknown"};

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

/* Half the interquartile range over the median. */
static double spread(double *v, int n) {
    gsl_sort(v, 1, (size_t)n);
    const double median = gsl_stats_median_from_sorted_data(v, 1, (size_t)n);
    const double q1 = gsl_stats_quantile_from_sorted_data(v, 1, (size_t)n, 0.25);
    const double q3 = gsl_stats_quantile_from_sorted_data(v, 1, (size_t)n, 0.75);
    return median > 0 ? (q3 - q1) / 2 / median : 0;
}

static hp_verdict judge_row(double delta, double p, double limit) {
    if (isnan(limit)) return HP_VERDICT_INFO;
    if (!isnan(p) && p >= HP_COMPARE_ALPHA) return HP_VERDICT_SAME;
    if (delta > limit) return HP_VERDICT_REGRESSION;
    return delta < -limit ? HP_VERDICT_BETTER : HP_VERDICT_SAME;
}

static void add_time(hp_check *c, const hp_compare_row *r, double *old, double *new, double limit) {
    hp_check_row *row = &c->row[c->n_row++];
    *row = (hp_check_row){.name = r->name,
                          .unit = HP_CHECK_SECONDS,
                          .old_median = r->predicted_s,
                          .new_median = r->measured_s,
                          .old_spread = spread(old, c->n_old),
                          .new_spread = spread(new, c->n_new),
                          .delta = r->change,
                          .p = r->p,
                          .limit = limit};
    row->verdict = judge_row(row->delta, row->p, limit);
    if (c->too_few && row->verdict != HP_VERDICT_INFO) row->verdict = HP_VERDICT_UNKNOWN;
}

static double *phase_samples(hp_arena *arena, const hp_trace *t, int phase) {
    int32_t *group = HP_NEW(arena, int32_t, t->n_task);
    for (int i = 0; i < t->n_task; i++) group[i] = t->task[i].phase == phase ? 0 : -1;
    return hp_trace_totals(arena, t, group, 1);
}

/* Adds the rows of `compare`, of which only the step is judged. */
static void add_times(hp_arena *arena, const hp_trace *old, const hp_trace *new, const hp_comparison *m,
                      double limit, hp_check *c) {
    add_time(c, &m->step, hp_trace_steps(arena, old), hp_trace_steps(arena, new), limit);
    for (int i = 0; i < m->n_phase; i++) {
        const hp_compare_row *r = &m->phase[i];
        if (r->phase < 0)
            add_time(c, r, hp_trace_waiting(arena, old), hp_trace_waiting(arena, new), NAN);
        else
            add_time(c, r, phase_samples(arena, old, r->phase), phase_samples(arena, new, r->phase), NAN);
    }
}

static void add_plain(hp_check *c, const char *name, hp_check_unit unit, double old, double new, double limit,
                      bool absolute) {
    hp_check_row r = {
        .name = name, .unit = unit, .old_median = old, .new_median = new, .p = NAN, .limit = limit};
    r.delta_absolute = absolute;
    r.delta = absolute ? new - old : hp_change(old, new);
    r.verdict = judge_row(r.delta, NAN, limit);
    if (!isfinite(new)) r.verdict = HP_VERDICT_REGRESSION;
    c->row[c->n_row++] = r;
}

/* Adds a row for how the runs ended if one of them did not end well. */
static void add_status(hp_check *c, int old, int new) {
    if (old == 0 && new == 0) return;
    c->row[c->n_row++] = (hp_check_row){.name = "exit status",
                                        .unit = HP_CHECK_STATUS,
                                        .old_median = old,
                                        .new_median = new,
                                        .delta = NAN,
                                        .p = NAN,
                                        .limit = 0,
                                        .verdict = new ? HP_VERDICT_REGRESSION : HP_VERDICT_INFO};
}

/* Steps per side from which complete separation is significant. Many steps on one side do not make up for few
 * on the other: steps of one process are less independent than the test assumes. */
static int steps_needed(void) {
    double v[64];
    for (int n = 1; n <= 32; n++) {
        for (int i = 0; i < 2 * n; i++) v[i] = i;
        if (hp_mann_whitney(v, n, v + n, n) < HP_COMPARE_ALPHA) return n;
    }
    return 32;
}

hp_status hp_check_run(hp_arena *arena, hp_check_side *old_side, hp_check_side *new_side,
                       const hp_check_limits *limits, hp_check *c, hp_error *err) {
    memset(c, 0, sizeof *c);
    hp_trace *old = &old_side->trace, *new = &new_side->trace;
    if (old->n_iter == 0 || new->n_iter == 0)
        return hp_fail(err, HP_EDATA, "the %s has no complete step to judge; run it with more --steps",
                       old->n_iter == 0 ? "baseline" : "run");
    hp_comparison m;
    HP_TRY(hp_compare(arena, old, new, &m, err));
    c->warmup_old = m.warmup[0];
    c->warmup_new = m.warmup[1];
    c->n_old = old->n_iter;
    c->n_new = new->n_iter;
    c->n_needed = steps_needed();
    c->too_few = c->n_old < c->n_needed || c->n_new < c->n_needed;
    c->plans_differ = strcmp(old->plan_hash, new->plan_hash) != 0;
    c->row = HP_NEW(arena, hp_check_row, m.n_phase + 5); /* step, phases; two rows of memory, loss, status */
    add_times(arena, old, new, &m, limits->max_slowdown, c);
    if (!isnan(old_side->planned_bytes) && !isnan(new_side->planned_bytes))
        add_plain(c, "planned memory", HP_CHECK_BYTES, old_side->planned_bytes, new_side->planned_bytes,
                  limits->max_memory, false);
    if (!isnan(old_side->peak_bytes) && !isnan(new_side->peak_bytes))
        add_plain(c, "peak memory", HP_CHECK_BYTES, old_side->peak_bytes, new_side->peak_bytes,
                  limits->max_memory, false);
    if (new_side->has_loss && (old_side->has_loss || !isfinite(new_side->final_loss)))
        add_plain(c, "final loss", HP_CHECK_PLAIN, old_side->final_loss, new_side->final_loss,
                  limits->max_loss_drift, !limits->loss_relative);
    add_status(c, old->status, new->status);
    for (int i = 0; i < c->n_row; i++) c->n_regression += c->row[i].verdict == HP_VERDICT_REGRESSION;
    return HP_OK;
}
