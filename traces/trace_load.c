/* trace_load.c - reads a run from SQLite and checks what query.c relies on: known tasks, known ranks,
 * complete iterations. */
#include "traces/query.h"
#include "traces/trace_text.h"

#include <math.h>
#include <string.h>

enum { MAX_RANKS = 1 << 20, MAX_ROLES = 1 << 16 };

static hp_status fail(const hp_db *db, int64_t run, const char *what, hp_error *err) {
    return hp_fail(err, HP_EDATA, "%s: run %lld: %s; record it again", db->path, (long long)run, what);
}

/* Prepares a query whose only parameter is the run; the caller finalizes. */
static hp_status query_run(hp_db *db, const char *sql, int64_t run, sqlite3_stmt **st, hp_error *err) {
    HP_TRY(hp_db_prepare(db, sql, st, err));
    hp_db_bind(*st, "i", run);
    return HP_OK;
}

static hp_status load_run(hp_arena *arena, hp_db *db, hp_trace *t, hp_error *err) {
    sqlite3_stmt *st = NULL;
    HP_TRY(query_run(
        db,
        "SELECT kind, plan_hash, strategy, machine, device, version, host, processor, ranks, status FROM run"
        " WHERE id = ?",
        t->run, &st, err));
    bool row = false;
    hp_status status = hp_db_next(db, st, &row, err);
    if (status == HP_OK && !row) status = fail(db, t->run, "not in the file", err);
    if (status == HP_OK) {
        const char **text[] = {&t->kind,   &t->plan_hash, &t->strategy, &t->machine,
                               &t->device, &t->version,   &t->host,     &t->processor};
        for (int i = 0; i < (int)(sizeof text / sizeof *text); i++)
            *text[i] = hp_text_clean(arena, hp_db_text(st, i));
        t->ranks = sqlite3_column_int(st, 8);
        t->status = sqlite3_column_int(st, 9);
        if (t->ranks < 1 || t->ranks > MAX_RANKS)
            status = fail(db, t->run, "impossible number of ranks", err);
    }
    sqlite3_finalize(st);
    return status;
}

/* --- tasks --- */

static bool is_layer_name(const char *name) {
    for (int i = 0; i < HP_LAYER_OPS; i++)
        if (strcmp(hp_layer_infos[i].name, name) == 0) return true;
    return false;
}

/* The opcode of "fwd.conv"; -1 if there is none, or if the part after the dot is not a layer operator. */
static int find_op(const char *kind) {
    const size_t n = strcspn(kind, ".");
    if (kind[n] && !is_layer_name(kind + n + 1)) return -1;
    for (int i = 0; i < HP_TASK_OPS; i++)
        if (strlen(hp_task_infos[i].name) == n && memcmp(hp_task_infos[i].name, kind, n) == 0) return i;
    return -1;
}

/* Roles count from 0, tasks of a role from 0: the index is then the position in (role, task) order. */
static bool in_sequence(const hp_trace_task *previous, const hp_trace_task *t) {
    if (!previous) return t->role == 0 && t->task == 0;
    if (t->role == previous->role) return t->task == previous->task + 1;
    return t->role == previous->role + 1 && t->task == 0 && t->role < MAX_ROLES;
}

static hp_status load_task(hp_arena *arena, hp_db *db, sqlite3_stmt *st, hp_trace *t, hp_error *err) {
    hp_trace_task *k = &t->task[t->n_task];
    k->role = sqlite3_column_int(st, 0);
    k->task = sqlite3_column_int(st, 1);
    k->kind = hp_text_clean(arena, hp_db_text(st, 2));
    k->label = hp_text_clean(arena, hp_db_text(st, 3));
    k->bytes = sqlite3_column_int64(st, 4);
    k->meeting = sqlite3_column_int(st, 5);
    k->world = sqlite3_column_int(st, 6) != 0;
    if (k->meeting < -1) return fail(db, t->run, "a task of an impossible meeting", err);
    k->op = find_op(k->kind);
    if (k->op < 0) return fail(db, t->run, "a task of unknown kind", err);
    k->phase = hp_task_infos[k->op].phase;
    k->queue = hp_task_infos[k->op].queue;
    if (!in_sequence(t->n_task ? k - 1 : NULL, k))
        return fail(db, t->run, "its tasks are not numbered in order", err);
    t->n_task++;
    return HP_OK;
}

static hp_status load_tasks(hp_arena *arena, hp_db *db, hp_trace *t, hp_error *err) {
    sqlite3_stmt *st = NULL;
    HP_TRY(query_run(
        db, "SELECT role, task, op, label, bytes, meeting, world FROM task WHERE run = ? ORDER BY role, task",
        t->run, &st, err));
    int capacity = 0;
    bool row = true;
    hp_status status = HP_OK;
    while (status == HP_OK && (status = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        HP_ROOM(arena, t->task, t->n_task, capacity);
        status = load_task(arena, db, st, t, err);
    }
    sqlite3_finalize(st);
    t->n_role = t->n_task ? t->task[t->n_task - 1].role + 1 : 0;
    return status;
}

/* First task of every role, and the end: n_role + 1 entries. */
static int32_t *role_starts(hp_arena *arena, const hp_trace *t) {
    int32_t *first = HP_NEW(arena, int32_t, t->n_role + 1);
    for (int i = 0; i < t->n_task; i++)
        if (t->task[i].task == 0) first[t->task[i].role] = i;
    first[t->n_role] = t->n_task;
    return first;
}

/* --- spans --- */

typedef struct loader {
    hp_trace *t;
    int32_t *role_first; /* n_role + 1 */
    int32_t *rank_role;  /* per rank: its role, -1 before its first span */
} loader;

static hp_status count_spans(hp_db *db, const hp_trace *t, int64_t *newest, int64_t *n, hp_error *err) {
    sqlite3_stmt *st = NULL;
    HP_TRY(
        query_run(db, "SELECT coalesce(max(iter), 0), count(*) FROM span WHERE run = ?", t->run, &st, err));
    bool row = false;
    const hp_status status = hp_db_next(db, st, &row, err);
    *newest = row && sqlite3_column_int64(st, 0) > 0 ? sqlite3_column_int64(st, 0) : 0;
    *n = row ? sqlite3_column_int64(st, 1) : 0;
    sqlite3_finalize(st);
    return status;
}

/* Checks one row and converts it to a span. */
static hp_status read_span(hp_db *db, sqlite3_stmt *st, loader *l, hp_trace_span *s, hp_error *err) {
    const hp_trace *t = l->t;
    const int64_t rank = sqlite3_column_int64(st, 0), role = sqlite3_column_int64(st, 1);
    const int64_t task = sqlite3_column_int64(st, 2), iter = sqlite3_column_int64(st, 3);
    s->t0_ns = sqlite3_column_int64(st, 4);
    s->t1_ns = sqlite3_column_int64(st, 5);
    if (rank < 0 || rank >= t->ranks)
        return fail(db, t->run, "a span of a rank that the run does not have", err);
    if (role < 0 || role >= t->n_role)
        return fail(db, t->run, "a span of a role that the program does not have", err);
    if (l->rank_role[rank] >= 0 && l->rank_role[rank] != role)
        return fail(db, t->run, "a rank with two roles", err);
    if (iter < INT32_MIN || iter > INT32_MAX || task < 0 || task > INT32_MAX)
        return fail(db, t->run, "impossible numbers in a span", err);
    const int64_t century_ns = (int64_t)100 * 366 * 86400 * 1000000000;
    if (s->t1_ns < s->t0_ns || s->t0_ns < -century_ns || s->t1_ns > century_ns)
        return fail(db, t->run, "impossible times in a span", err);
    const int64_t index = l->role_first[role] + task;
    if (iter >= 0 && index >= l->role_first[role + 1])
        return fail(db, t->run, "a span of a task that the program does not have", err);
    l->rank_role[rank] = (int32_t)role;
    s->rank = (int32_t)rank;
    s->iter = (int32_t)iter;
    s->task = iter >= 0 ? (int32_t)index : -1;
    s->eval_task = (int32_t)task;
    return HP_OK;
}

static int compare_spans(const void *a, const void *b) {
    const hp_trace_span *x = a, *y = b;
    if (x->iter != y->iter) return x->iter < y->iter ? -1 : 1;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->t0_ns != y->t0_ns) return x->t0_ns < y->t0_ns ? -1 : 1;
    if (x->t1_ns != y->t1_ns) return x->t1_ns < y->t1_ns ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

static hp_status load_spans(hp_arena *arena, hp_db *db, loader *l, bool with_eval, hp_error *err) {
    hp_trace *t = l->t;
    int64_t newest = 0, rows = 0;
    HP_TRY(count_spans(db, t, &newest, &rows, err));
    sqlite3_stmt *st = NULL;
    HP_TRY(hp_db_prepare(db,
                         "SELECT rank, role, task, iter, t0_ns, t1_ns FROM span"
                         " WHERE run = ? AND (iter > ? OR (? AND iter < 0)) AND (iter >= 0 OR ?)",
                         &st, err));
    hp_db_bind(st, "iiii", t->run, newest - HP_TRACE_NEWEST, (int64_t)with_eval, (int64_t)with_eval);
    t->span = HP_NEW(arena, hp_trace_span, rows);
    bool row = true;
    hp_status status = HP_OK;
    while (status == HP_OK && t->n_span < rows && (status = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        status = read_span(db, st, l, &t->span[t->n_span], err);
        t->n_span += status == HP_OK;
    }
    sqlite3_finalize(st);
    qsort(t->span, (size_t)t->n_span, sizeof *t->span, compare_spans);
    return status;
}

static void count_ranks(hp_arena *arena, const loader *l) {
    l->t->role_ranks = HP_NEW(arena, int32_t, l->t->n_role + 1);
    for (int r = 0; r < l->t->ranks; r++) {
        if (l->rank_role[r] < 0) continue;
        l->t->n_rank++;
        l->t->role_ranks[l->rank_role[r]]++;
    }
}

/* --- iterations --- */

static hp_trace_iter make_iter(const hp_trace *t, int64_t first) {
    hp_trace_iter it = {t->span[first].iter, first, first, t->span[first].t0_ns, t->span[first].t1_ns, 0};
    for (; it.last < t->n_span && t->span[it.last].iter == it.iter; it.last++) {
        const hp_trace_span *s = &t->span[it.last];
        if (s->t0_ns < it.t0_ns) it.t0_ns = s->t0_ns;
        if (s->t1_ns > it.t1_ns) it.t1_ns = s->t1_ns;
    }
    it.step_s = (double)(it.t1_ns - it.t0_ns) * 1e-9;
    return it;
}

/* An iteration is complete when it has as many spans as the fullest one: the first may be partly overwritten,
 * the last cut short. */
static void find_iters(hp_arena *arena, hp_trace *t) {
    hp_trace_iter *all = NULL;
    int n = 0, capacity = 0;
    int64_t most = 0, i = 0;
    while (i < t->n_span && t->span[i].iter < 0) i++;
    while (i < t->n_span) {
        HP_ROOM(arena, all, n, capacity);
        all[n] = make_iter(t, i);
        i = all[n].last;
        if (all[n].last - all[n].first > most) most = all[n].last - all[n].first;
        n++;
    }
    t->iter = all;
    for (int k = 0; k < n; k++)
        if (all[k].last - all[k].first == most) t->iter[t->n_iter++] = all[k];
    t->n_partial = n - t->n_iter;
}

/* Step times measured around the whole step take precedence over the extent of its spans. */
static hp_status load_step_times(hp_arena *arena, hp_db *db, hp_trace *t, hp_error *err) {
    hp_trace_value *v = NULL;
    int64_t n = 0, k = 0;
    HP_TRY(hp_trace_counter(arena, db, t->run, hp_counter_names[HP_COUNTER_STEP], &v, &n, err));
    HP_ASSERT(t->iter || t->n_iter == 0);
    for (int i = 0; i < t->n_iter; i++) {
        double longest = 0;
        while (k < n && v[k].iter < t->iter[i].iter) k++;
        for (; k < n && v[k].iter == t->iter[i].iter; k++)
            if (isfinite(v[k].value) && v[k].value > longest) longest = v[k].value;
        if (longest > 0) t->iter[i].step_s = longest;
    }
    return HP_OK;
}

hp_status hp_trace_load(hp_arena *arena, hp_db *db, int64_t run, bool with_eval, hp_trace *t, hp_error *err) {
    memset(t, 0, sizeof *t);
    t->run = run;
    HP_TRY(load_run(arena, db, t, err));
    HP_TRY(load_tasks(arena, db, t, err));
    loader l = {t, role_starts(arena, t), HP_NEW(arena, int32_t, t->ranks)};
    for (int i = 0; i < t->ranks; i++) l.rank_role[i] = -1;
    HP_TRY(load_spans(arena, db, &l, with_eval, err));
    count_ranks(arena, &l);
    find_iters(arena, t);
    return load_step_times(arena, db, t, err);
}
