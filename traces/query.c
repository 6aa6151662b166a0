/* query.c - sums, medians and gaps of a loaded run (trace_load.c reads it). */
#include "traces/query.h"

#include <math.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double hp_median(double *v, int64_t n) {
    if (n <= 0) return NAN;
    qsort(v, (size_t)n, sizeof *v, compare_doubles);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

int hp_trace_drop_warmup(hp_trace *t) {
    if (t->n_iter < 3 || t->iter[0].iter != 0) return 0;
    t->iter++;
    t->n_iter--;
    return 1;
}

double *hp_trace_steps(hp_arena *arena, const hp_trace *t) {
    double *s = HP_NEW(arena, double, t->n_iter);
    for (int i = 0; i < t->n_iter; i++) s[i] = t->iter[i].step_s;
    return s;
}

static double span_seconds(const hp_trace_span *s) {
    return (double)(s->t1_ns - s->t0_ns) * 1e-9;
}

static int compare_medians(const void *a, const void *b) {
    const hp_trace_median *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

hp_trace_median *hp_trace_medians(hp_arena *arena, const hp_trace *t, int64_t *n) {
    *n = 0;
    const int64_t first = t->n_iter ? t->iter[0].first : 0,
                  last = t->n_iter ? t->iter[t->n_iter - 1].last : 0;
    hp_trace_median *all = HP_NEW(arena, hp_trace_median, last - first);
    double *seconds = HP_NEW(arena, double, t->n_iter ? last - first : 0);
    int64_t m = 0;
    for (int i = 0; i < t->n_iter; i++)
        for (int64_t k = t->iter[i].first; k < t->iter[i].last; k++)
            all[m++] = (hp_trace_median){t->span[k].rank, t->span[k].task, span_seconds(&t->span[k])};
    qsort(all, (size_t)m, sizeof *all, compare_medians);
    for (int64_t i = 0, j; i < m; i = j) {
        for (j = i; j < m && compare_medians(&all[i], &all[j]) == 0; j++) seconds[j - i] = all[j].seconds;
        all[*n] = all[i];
        all[(*n)++].seconds = hp_median(seconds, j - i);
    }
    return all;
}

double *hp_trace_totals(hp_arena *arena, const hp_trace *t, const int32_t *group, int n_group) {
    double *total = HP_NEW(arena, double, (int64_t)t->n_iter *n_group);
    for (int i = 0; i < t->n_iter; i++)
        for (int64_t k = t->iter[i].first; k < t->iter[i].last; k++) {
            const int g = group[t->span[k].task];
            if (g >= 0) total[(int64_t)i * n_group + g] += span_seconds(&t->span[k]) / t->n_rank;
        }
    return total;
}

double *hp_trace_waiting(hp_arena *arena, const hp_trace *t) {
    int32_t *group = HP_NEW(arena, int32_t, t->n_task);
    for (int i = 0; i < t->n_task; i++) group[i] = t->task[i].queue == HP_QUEUE_COMPUTE ? 0 : -1;
    double *waiting = hp_trace_totals(arena, t, group, 1);
    for (int i = 0; i < t->n_iter; i++) waiting[i] = fmax(0, t->iter[i].step_s - waiting[i]);
    return waiting;
}

hp_status hp_trace_counter(hp_arena *arena, hp_db *db, int64_t run, const char *name, hp_trace_value **v,
                           int64_t *n, hp_error *err) {
    sqlite3_stmt *st = NULL;
    HP_TRY(hp_db_prepare(db,
                         "SELECT rank, iter, t_ns, value FROM counter WHERE run = ? AND name = ?"
                         " ORDER BY iter, rank, t_ns",
                         &st, err));
    hp_db_bind(st, "is", run, name);
    hp_trace_value *array = NULL;
    int count = 0, capacity = 0;
    bool row = true;
    hp_status status = HP_OK;
    while ((status = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        HP_ROOM(arena, array, count, capacity);
        const bool null = sqlite3_column_type(st, 3) == SQLITE_NULL;
        array[count++] =
            (hp_trace_value){sqlite3_column_int(st, 0), sqlite3_column_int(st, 1),
                             sqlite3_column_int64(st, 2), null ? NAN : sqlite3_column_double(st, 3)};
    }
    sqlite3_finalize(st);
    *v = array;
    *n = count;
    return status;
}

static hp_status find_same_plan(hp_db *db, int64_t exec, int64_t *sim, hp_error *err) {
    sqlite3_stmt *st = NULL;
    HP_TRY(hp_db_prepare(db,
                         "SELECT max(id) FROM run WHERE kind = 'sim' AND"
                         " plan_hash = (SELECT plan_hash FROM run WHERE id = ?) HAVING max(id) IS NOT NULL",
                         &st, err));
    hp_db_bind(st, "i", exec);
    bool row = false;
    const hp_status status = hp_db_next(db, st, &row, err);
    if (row) *sim = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return status;
}

hp_status hp_trace_find_pair(hp_db *db, int64_t *sim, int64_t *exec, hp_error *err) {
    HP_TRY(hp_trace_find(db, "sim", sim, err));
    HP_TRY(hp_trace_find(db, "exec", exec, err));
    return *exec < 0 ? HP_OK : find_same_plan(db, *exec, sim, err);
}

/* A task that comes to a meeting; replicas that do not meet each other have separate meetings. */
typedef struct guest {
    int32_t meeting, replica;
    int64_t span, t0_ns;
} guest;

static int compare_guests(const void *a, const void *b) {
    const guest *x = a, *y = b;
    if (x->meeting != y->meeting) return x->meeting < y->meeting ? -1 : 1;
    if (x->replica != y->replica) return x->replica < y->replica ? -1 : 1;
    return (x->t0_ns > y->t0_ns) - (x->t0_ns < y->t0_ns);
}

int64_t *hp_trace_met(hp_arena *arena, const hp_trace *t, const hp_trace_iter *it) {
    int64_t *met = HP_NEW(arena, int64_t, it->last - it->first), n = 0;
    guest *g = HP_NEW(arena, guest, it->last - it->first);
    for (int64_t i = it->first; i < it->last; i++) {
        const hp_trace_span *s = &t->span[i];
        const hp_trace_task *k = &t->task[s->task];
        met[i - it->first] = s->t0_ns;
        if (k->meeting >= 0) g[n++] = (guest){k->meeting, k->world ? 0 : s->rank / t->n_role, i, s->t0_ns};
    }
    qsort(g, (size_t)n, sizeof *g, compare_guests);
    int64_t all = 0; /* the last one's start: found at the end of each run of equal meetings */
    for (int64_t i = n - 1; i >= 0; i--) {
        if (i == n - 1 || g[i].meeting != g[i + 1].meeting || g[i].replica != g[i + 1].replica)
            all = g[i].t0_ns;
        if (all < t->span[g[i].span].t1_ns) met[g[i].span - it->first] = all;
    }
    return met;
}
