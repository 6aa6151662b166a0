/* trace_check.c - compares runs row by row in benchstat's style, and judges each row. */
#include "traces/check/check_times.h"
#include "traces/check/compare.h"
#include "traces/check/ranktest.h"

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

static hp_status last_loss(hp_arena *arena, hp_db *db, int64_t run, hp_checked_run *s, hp_error *err) {
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

static hp_status load_newest(hp_arena *arena, hp_db *db, hp_checked_run *s, hp_error *err) {
    int64_t run = -1;
    HP_TRY(hp_trace_find(db, "exec", &run, err));
    if (run < 0)
        return hp_fail(err, HP_EDATA, "%s: holds no executed run; `hplan run %s` makes one", db->path,
                       db->path);
    HP_TRY(hp_trace_load(arena, db, run, false, &s->trace, err));
    if (s->trace.n_iter == 0)
        return hp_fail(err, HP_EDATA, "%s: has no complete step to judge; run it with more --steps",
                       db->path);
    HP_TRY(largest(arena, db, run, HP_COUNTER_PLANNED, &s->planned_bytes, err));
    HP_TRY(largest(arena, db, run, HP_COUNTER_PEAK, &s->peak_bytes, err));
    return last_loss(arena, db, run, s, err);
}

static hp_status load_file(hp_arena *arena, const char *path, hp_checked_run *s, hp_error *err) {
    hp_db db;
    s->path = path;
    HP_TRY(hp_db_open(path, &db, err));
    const hp_status status = load_newest(arena, &db, s, err);
    hp_db_close(&db);
    return status;
}

hp_status hp_check_load(hp_arena *arena, const char *const *path, int n, hp_check_side *s, hp_error *err) {
    *s = (hp_check_side){n, HP_NEW(arena, hp_checked_run, n)};
    for (int i = 0; i < n; i++) HP_TRY(load_file(arena, path[i], &s->run[i], err));
    return HP_OK;
}

/* --- times --- */

static hp_verdict judge_row(double delta, double p, double alpha, double limit) {
    if (isnan(limit)) return HP_VERDICT_INFO;
    if (!isnan(p) && p >= alpha) return HP_VERDICT_SAME;
    if (delta > limit) return HP_VERDICT_REGRESSION;
    return delta < -limit ? HP_VERDICT_BETTER : HP_VERDICT_SAME;
}

static bool occurs(const hp_check_times *old, const hp_check_times *new, int k) {
    return k == HP_TIME_STEP || k == HP_TIME_WAITING || old->value[k] > 0 || new->value[k] > 0;
}

static const char *time_name(int k) {
    if (k == HP_TIME_STEP) return "step";
    return k == HP_TIME_WAITING ? "waiting" : hp_phase_names[k - HP_TIME_PHASE];
}

static bool is_judged(int k, bool phases) {
    return k == HP_TIME_STEP || (phases && k != HP_TIME_WAITING);
}

static void add_time(hp_check *c, const hp_check_times *old, const hp_check_times *new, int k, double limit) {
    hp_check_row *row = &c->row[c->n_row++];
    *row = (hp_check_row){.name = time_name(k),
                          .unit = HP_CHECK_SECONDS,
                          .delta = hp_change(old->value[k], new->value[k]),
                          .p = hp_mann_whitney(old->sample[k], old->n, new->sample[k], new->n),
                          .limit = limit};
    row->old = hp_check_describe(old->value[k], old->sample[k], old->n);
    row->new = hp_check_describe(new->value[k], new->sample[k], new->n);
    row->verdict = judge_row(row->delta, row->p, c->alpha, limit);
    if (c->too_few && row->verdict != HP_VERDICT_INFO) row->verdict = HP_VERDICT_UNKNOWN;
}

/* Samples per side from which complete separation is significant. Many samples on one side do not make up for
 * few on the other: steps of one process are less independent than the test assumes. */
static int samples_needed(double alpha) {
    double v[64];
    for (int n = 1; n <= 32; n++) {
        for (int i = 0; i < 2 * n; i++) v[i] = i;
        if (hp_mann_whitney(v, n, v + n, n) < alpha) return n;
    }
    return 32;
}

static void add_times(hp_arena *arena, const hp_check_side *old_side, const hp_check_side *new_side,
                      const hp_check_limits *l, hp_check *c) {
    const hp_check_times old = hp_check_times_of(arena, old_side, c->by_run);
    const hp_check_times new = hp_check_times_of(arena, new_side, c->by_run);
    int judged = 0;
    for (int k = 0; k < HP_TIMES; k++) judged += occurs(&old, &new, k) && is_judged(k, l->phases);
    c->alpha = HP_COMPARE_ALPHA / judged;
    c->n_old = old.n;
    c->n_new = new.n;
    c->n_needed = samples_needed(c->alpha);
    c->too_few = c->n_old < c->n_needed || c->n_new < c->n_needed;
    for (int k = 0; k < HP_TIMES; k++)
        if (occurs(&old, &new, k))
            add_time(c, &old, &new, k, is_judged(k, l->phases) ? l->max_slowdown : NAN);
}

/* --- memory, loss, ends --- */

/* Of all runs: the median. NaN where one of them has none, or has NaN: it must not hide among the others. */
static double over_runs(hp_arena *arena, const hp_check_side *s, size_t at) {
    double *v = HP_NEW(arena, double, s->n);
    for (int i = 0; i < s->n; i++) {
        v[i] = *(const double *)(const void *)((const char *)&s->run[i] + at);
        if (!isfinite(v[i])) return v[i];
    }
    return hp_median(v, s->n);
}

static void add_plain(hp_check *c, const char *name, hp_check_unit unit, double old, double new, double limit,
                      bool absolute) {
    hp_check_row r = {.name = name,
                      .unit = unit,
                      .old = {old, 0, NAN},
                      .new = {new, 0, NAN},
                      .delta = absolute ? new - old : hp_change(old, new),
                      .delta_absolute = absolute,
                      .p = NAN,
                      .limit = limit};
    r.verdict = judge_row(r.delta, NAN, c->alpha, limit);
    if (!isfinite(new)) r.verdict = HP_VERDICT_REGRESSION;
    c->row[c->n_row++] = r;
}

static void add_memory(hp_arena *arena, const hp_check_side *old_side, const hp_check_side *new_side,
                       double limit, hp_check *c) {
    static const struct {
        const char *name;
        size_t at;
    } list[] = {{"planned memory", offsetof(hp_checked_run, planned_bytes)},
                {"peak memory", offsetof(hp_checked_run, peak_bytes)}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const double old = over_runs(arena, old_side, list[i].at),
                     new = over_runs(arena, new_side, list[i].at);
        if (!isnan(old) && !isnan(new)) add_plain(c, list[i].name, HP_CHECK_BYTES, old, new, limit, false);
    }
}

static bool all_have_loss(const hp_check_side *s) {
    bool all = true;
    for (int i = 0; i < s->n; i++) all = all && s->run[i].has_loss;
    return all;
}

static bool any_lost_it(const hp_check_side *s) {
    bool any = false;
    for (int i = 0; i < s->n; i++) any = any || (s->run[i].has_loss && !isfinite(s->run[i].final_loss));
    return any;
}

static void add_loss(hp_arena *arena, const hp_check_side *old_side, const hp_check_side *new_side,
                     const hp_check_limits *l, hp_check *c) {
    const size_t at = offsetof(hp_checked_run, final_loss);
    const double old = over_runs(arena, old_side, at), new = over_runs(arena, new_side, at);
    if (any_lost_it(new_side) || (all_have_loss(old_side) && all_have_loss(new_side)))
        add_plain(c, "final loss", HP_CHECK_PLAIN, old, new, l->max_loss_drift, !l->loss_relative);
}

/* The first status that is not 0. */
static int worst_status(const hp_check_side *s) {
    for (int i = 0; i < s->n; i++)
        if (s->run[i].trace.status != 0) return s->run[i].trace.status;
    return 0;
}

/* Adds a row for how the runs ended if one of them did not end well. */
static void add_status(hp_check *c, int old, int new) {
    if (old == 0 && new == 0) return;
    c->row[c->n_row++] = (hp_check_row){.name = "exit status",
                                        .unit = HP_CHECK_STATUS,
                                        .old = {old, 0, NAN},
                                        .new = {new, 0, NAN},
                                        .delta = NAN,
                                        .p = NAN,
                                        .limit = 0,
                                        .verdict = new ? HP_VERDICT_REGRESSION : HP_VERDICT_INFO};
}

/* Drops every run's warm-up; returns the number of runs that had one. */
static int drop_warmups(hp_check_side *s) {
    int n = 0;
    for (int i = 0; i < s->n; i++) n += hp_trace_drop_warmup(&s->run[i].trace);
    return n;
}

static bool plans_differ(const hp_check_side *old, const hp_check_side *new) {
    const char *first = old->run[0].trace.plan_hash;
    for (int i = 0; i < old->n; i++)
        if (strcmp(old->run[i].trace.plan_hash, first) != 0) return true;
    for (int i = 0; i < new->n; i++)
        if (strcmp(new->run[i].trace.plan_hash, first) != 0) return true;
    return false;
}

void hp_check_run(hp_arena *arena, hp_check_side *old_side, hp_check_side *new_side,
                  const hp_check_limits *limits, hp_check *c) {
    *c = (hp_check){.by_run = old_side->n > 1 || new_side->n > 1,
                    .warmup_old = drop_warmups(old_side),
                    .warmup_new = drop_warmups(new_side),
                    .plans_differ = plans_differ(old_side, new_side)};
    c->row = HP_NEW(arena, hp_check_row, HP_TIMES + 4); /* and two rows of memory, loss, status */
    add_times(arena, old_side, new_side, limits, c);
    add_memory(arena, old_side, new_side, limits->max_memory, c);
    add_loss(arena, old_side, new_side, limits, c);
    add_status(c, worst_status(old_side), worst_status(new_side));
    for (int i = 0; i < c->n_row; i++) c->n_regression += c->row[i].verdict == HP_VERDICT_REGRESSION;
}
