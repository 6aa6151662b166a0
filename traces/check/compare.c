/* compare.c - prediction error and its significance, by phase, kind of task and task. */
#include "traces/check/compare.h"
#include "traces/check/ranktest.h"

#include <math.h>
#include <string.h>

/* One side's times by group: a value per group (based on medians) and one per iteration (for the test). */
typedef struct side {
    const hp_trace *t;
    int n_group;
    double *value;  /* per group, seconds */
    double *sample; /* (n_iter, n_group) */
} side;

static side side_new(hp_arena *arena, const hp_trace *t, const hp_trace_median *median, int64_t n_median,
                     const int32_t *group, int n_group) {
    side s = {t, n_group, HP_NEW(arena, double, n_group), hp_trace_totals(arena, t, group, n_group)};
    for (int64_t i = 0; i < n_median; i++)
        if (group[median[i].task] >= 0) s.value[group[median[i].task]] += median[i].seconds / t->n_rank;
    return s;
}

static double *column(hp_arena *arena, const side *s, int group) {
    double *v = HP_NEW(arena, double, s->t->n_iter);
    for (int i = 0; i < s->t->n_iter; i++) v[i] = s->sample[(int64_t)i * s->n_group + group];
    return v;
}

double hp_change(double old, double new) {
    if (old > 0) return new / old - 1;
    return new > 0 ? INFINITY : isnan(new) ? NAN : 0;
}

const char *hp_format_change(double change, char out[32]) {
    snprintf(out, 32, isinf(change) ? "new" : "%+.2f%%", 100 * change);
    return out;
}

/* A prediction is a point; two sets of iterations are two samples. */
static double p_value(const hp_comparison *c, const double *a, int na, const double *b, int nb) {
    if (na == 0 || nb == 0) return NAN;
    return c->of_prediction ? hp_wilcoxon(b, nb, a[0]) : hp_mann_whitney(a, na, b, nb);
}

static hp_compare_row make_row(const hp_comparison *c, const char *name, double first, double second,
                               double p) {
    const double error = c->of_prediction && second > 0 ? (first - second) / second : NAN;
    const double change = c->of_prediction ? NAN : hp_change(first, second);
    return (hp_compare_row){.name = name,
                            .predicted_s = first,
                            .measured_s = second,
                            .error = error,
                            .change = change,
                            .p = p,
                            .expected_s = NAN,
                            .model_error = NAN,
                            .role = -1,
                            .task = -1,
                            .op = -1,
                            .phase = -1,
                            .kind = name};
}

static hp_compare_row row_of_samples(const hp_comparison *c, const char *name, double *a, int na, double *b,
                                     int nb) {
    /* must precede hp_median, which sorts; the test itself does not depend on the order */
    const double p = p_value(c, a, na, b, nb);
    return make_row(c, name, hp_median(a, na), hp_median(b, nb), p);
}

static hp_compare_row row_of_group(hp_arena *arena, const hp_comparison *c, const char *name, const side *a,
                                   const side *b, int group) {
    const double p = p_value(c, column(arena, a, group), a->t->n_iter, column(arena, b, group), b->t->n_iter);
    return make_row(c, name, a->value[group], b->value[group], p);
}

/* --- phases --- */

static side side_by_phase(hp_arena *arena, const hp_trace *t, const hp_trace_median *m, int64_t n) {
    int32_t *group = HP_NEW(arena, int32_t, t->n_task);
    for (int i = 0; i < t->n_task; i++) group[i] = t->task[i].phase;
    return side_new(arena, t, m, n, group, HP_PHASES);
}

static void compare_phases(hp_arena *arena, const side *a, const side *b, hp_comparison *c) {
    c->phase = HP_NEW(arena, hp_compare_row, HP_PHASES + 1);
    for (int i = 0; i < HP_PHASES; i++) {
        if (a->value[i] <= 0 && b->value[i] <= 0) continue;
        c->phase[c->n_phase] = row_of_group(arena, c, hp_phase_names[i], a, b, i);
        c->phase[c->n_phase++].phase = i;
    }
    c->phase[c->n_phase++] = row_of_samples(c, "waiting", hp_trace_waiting(arena, a->t), a->t->n_iter,
                                            hp_trace_waiting(arena, b->t), b->t->n_iter);
}

double *hp_compare_phases(hp_arena *arena, const hp_trace *t) {
    int64_t n = 0;
    const hp_trace_median *m = hp_trace_medians(arena, t, &n);
    double *seconds = HP_NEW(arena, double, HP_PHASES + 1);
    memcpy(seconds, side_by_phase(arena, t, m, n).value, HP_PHASES * sizeof *seconds);
    seconds[HP_PHASES] = hp_median(hp_trace_waiting(arena, t), t->n_iter);
    return seconds;
}

/* --- kinds --- */

typedef struct names {
    const char **name;
    int n, capacity;
} names;

static int name_index(hp_arena *arena, names *s, const char *name) {
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->name[i], name) == 0) return i;
    HP_ROOM(arena, s->name, s->n, s->capacity);
    s->name[s->n] = name;
    return s->n++;
}

static int32_t *kind_groups(hp_arena *arena, const hp_trace *t, names *kinds) {
    int32_t *group = HP_NEW(arena, int32_t, t->n_task);
    for (int i = 0; i < t->n_task; i++) group[i] = name_index(arena, kinds, t->task[i].kind);
    return group;
}

static int compare_rows(const void *a, const void *b) {
    const hp_compare_row *x = a, *y = b;
    if (x->measured_s != y->measured_s) return x->measured_s > y->measured_s ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void compare_kinds(hp_arena *arena, const hp_trace *a, const hp_trace_median *ma, int64_t na,
                          const hp_trace *b, const hp_trace_median *mb, int64_t nb, hp_comparison *c) {
    names kinds = {0};
    int32_t *ga = kind_groups(arena, a, &kinds), *gb = kind_groups(arena, b, &kinds);
    const side sa = side_new(arena, a, ma, na, ga, kinds.n), sb = side_new(arena, b, mb, nb, gb, kinds.n);
    c->kind = HP_NEW(arena, hp_compare_row, kinds.n);
    for (int i = 0; i < kinds.n; i++)
        if (sa.value[i] > 0 || sb.value[i] > 0)
            c->kind[c->n_kind++] = row_of_group(arena, c, kinds.name[i], &sa, &sb, i);
    qsort(c->kind, (size_t)c->n_kind, sizeof *c->kind, compare_rows);
}

/* --- tasks --- */

/* Seconds per task: mean over the ranks of its role; NaN: not recorded. */
static double *task_seconds(hp_arena *arena, const hp_trace *t, const hp_trace_median *m, int64_t n) {
    double *s = HP_NEW(arena, double, t->n_task);
    for (int i = 0; i < t->n_task; i++) s[i] = NAN;
    for (int64_t i = 0; i < n; i++) {
        double *v = &s[m[i].task];
        *v = (isnan(*v) ? 0 : *v) + m[i].seconds / t->role_ranks[t->task[m[i].task].role];
    }
    return s;
}

static void compare_tasks(hp_arena *arena, const hp_trace *a, const double *sa, const hp_trace *b,
                          const double *sb, hp_comparison *c) {
    c->task = HP_NEW(arena, hp_compare_row, b->n_task);
    for (int i = 0, j = 0; j < b->n_task; j++) {
        const hp_trace_task *y = &b->task[j];
        while (i < a->n_task &&
               (a->task[i].role < y->role || (a->task[i].role == y->role && a->task[i].task < y->task)))
            i++;
        if (i == a->n_task) break;
        const hp_trace_task *x = &a->task[i];
        if (x->role != y->role || x->task != y->task || strcmp(x->label, y->label) != 0) continue;
        if (isnan(sa[i]) || isnan(sb[j])) continue;
        hp_compare_row row = make_row(c, y->label, sa[i], sb[j], NAN);
        row.role = y->role;
        row.task = y->task;
        row.op = y->op;
        row.phase = y->phase;
        row.kind = y->kind;
        c->task[c->n_task++] = row;
    }
}

hp_status hp_compare(hp_arena *arena, hp_trace *a, hp_trace *b, hp_comparison *c, hp_error *err) {
    memset(c, 0, sizeof *c);
    c->of_prediction = strcmp(a->kind, "sim") == 0 && strcmp(b->kind, "sim") != 0;
    hp_trace *both[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        if (both[i]->n_iter == 0)
            return hp_fail(err, HP_EDATA,
                           "run %lld (%s) has no complete step to compare; run it with more --steps",
                           (long long)both[i]->run, both[i]->kind);
        c->warmup[i] = hp_trace_drop_warmup(both[i]);
        c->n_iter[i] = both[i]->n_iter;
        c->n_partial[i] = both[i]->n_partial;
    }
    c->step =
        row_of_samples(c, "step", hp_trace_steps(arena, a), a->n_iter, hp_trace_steps(arena, b), b->n_iter);
    int64_t na = 0, nb = 0;
    const hp_trace_median *ma = hp_trace_medians(arena, a, &na), *mb = hp_trace_medians(arena, b, &nb);
    const side pa = side_by_phase(arena, a, ma, na), pb = side_by_phase(arena, b, mb, nb);
    compare_phases(arena, &pa, &pb, c);
    compare_kinds(arena, a, ma, na, b, mb, nb, c);
    compare_tasks(arena, a, task_seconds(arena, a, ma, na), b, task_seconds(arena, b, mb, nb), c);
    return HP_OK;
}

/* --- loading --- */

static hp_status load_one_file(hp_arena *arena, hp_db *db, hp_trace *a, hp_trace *b, hp_error *err) {
    int64_t sim = -1, exec = -1;
    HP_TRY(hp_trace_find_pair(db, &sim, &exec, err));
    if (exec < 0)
        return hp_fail(err, HP_EDATA, "%s: holds no executed run; `hplan run %s` makes one", db->path,
                       db->path);
    if (sim < 0)
        return hp_fail(err, HP_EDATA,
                       "%s: holds no prediction; compare it with a second file: `hplan compare plan.db %s`",
                       db->path, db->path);
    HP_TRY(hp_trace_load(arena, db, sim, false, a, err));
    return hp_trace_load(arena, db, exec, false, b, err);
}

static hp_status load_best(hp_arena *arena, hp_db *db, hp_trace *t, hp_error *err) {
    int64_t sim = -1, exec = -1;
    HP_TRY(hp_trace_find_pair(db, &sim, &exec, err));
    if (exec < 0 && sim < 0)
        return hp_fail(err, HP_EDATA, "%s: holds neither a simulated nor an executed run", db->path);
    return hp_trace_load(arena, db, exec >= 0 ? exec : sim, false, t, err);
}

static hp_status load_path(hp_arena *arena, const char *path, hp_trace *t, hp_trace *second, hp_error *err) {
    hp_db db;
    HP_TRY(hp_db_open(path, &db, err));
    const hp_status s = second ? load_one_file(arena, &db, t, second, err) : load_best(arena, &db, t, err);
    hp_db_close(&db);
    return s;
}

hp_status hp_compare_load(hp_arena *arena, const char *path_a, const char *path_b, hp_trace *a, hp_trace *b,
                          hp_error *err) {
    if (!path_b) return load_path(arena, path_a, a, b, err);
    HP_TRY(load_path(arena, path_a, a, NULL, err));
    HP_TRY(load_path(arena, path_b, b, NULL, err));
    if (strcmp(b->kind, "sim") == 0 && strcmp(a->kind, "sim") != 0) {
        const hp_trace swap = *a;
        *a = *b;
        *b = swap;
    }
    return HP_OK;
}
