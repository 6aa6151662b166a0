/* trace_bench.c - writes series of queries to SQLite and reads them back; files are untrusted. */
#include "traces/trace_bench.h"
#include "base/alloc.h"

#include "traces/trace_text.h"

#include <math.h>

/* --- writing --- */

static hp_status insert_series(hp_db *db, const hp_bench_series *s, int64_t *id, hp_error *err) {
    HP_TRY(hp_db_exec(
        db, err,
        "INSERT INTO bench(net, prec, scenario, strategy, machine, device, version, started, image_h, "
        "image_w,"
        " batch, threads, ranks, predicted_s, planned_bytes, peak_bytes, rss_bytes)"
        " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        "ssssssssiiiiidiii", s->net, s->prec, hp_scenario_infos[s->scenario].name, s->strategy, s->machine,
        s->device, s->version, s->started, (int64_t)s->image_h, (int64_t)s->image_w, s->batch,
        (int64_t)s->threads, (int64_t)s->ranks, s->predicted_s, s->planned_bytes, s->peak_bytes,
        s->rss_bytes));
    *id = sqlite3_last_insert_rowid(db->sql);
    return HP_OK;
}

hp_status hp_bench_write(hp_db *db, const hp_bench_series *s, hp_error *err) {
    sqlite3_stmt *st = NULL;
    int64_t id = 0;
    HP_TRY(insert_series(db, s, &id, err));
    HP_TRY(hp_db_prepare(db, "INSERT INTO latency(bench, round, query, ns) VALUES(?,?,?,?)", &st, err));
    hp_status status = HP_OK;
    for (int64_t i = 0; i < s->n_query && status == HP_OK; i++) {
        hp_db_bind(st, "iiii", id, (int64_t)s->query[i].round, i, s->query[i].ns);
        status = hp_db_step_done(db, st, err);
    }
    sqlite3_finalize(st);
    return status;
}

/* --- reading --- */

static hp_status fail_damaged(const hp_db *db, const char *what, hp_error *err) {
    return hp_fail(err, HP_EDATA, "%s: damaged: %s; measure again with `hplan bench`", db->path, what);
}

static const char *text_at(hp_arena *arena, sqlite3_stmt *st, int column) {
    return hp_text_clean(arena, hp_db_text(st, column));
}

/* Is it in 1 .. most? The bound prevents overflow of sums and products. */
static bool in_range(int64_t value, int64_t most) {
    return value >= 1 && value <= most;
}

static hp_status read_series(hp_arena *arena, hp_db *db, sqlite3_stmt *st, hp_bench_series *s,
                             hp_error *err) {
    static const int64_t MOST_BYTES = INT64_C(1) << 60;
    const int64_t h = sqlite3_column_int64(st, 9), w = sqlite3_column_int64(st, 10),
                  batch = sqlite3_column_int64(st, 11), threads = sqlite3_column_int64(st, 12),
                  ranks = sqlite3_column_int64(st, 13);
    *s = (hp_bench_series){.net = text_at(arena, st, 1),
                           .prec = text_at(arena, st, 2),
                           .scenario = (int32_t)hp_scenario_find(hp_db_text(st, 3)),
                           .strategy = text_at(arena, st, 4),
                           .machine = text_at(arena, st, 5),
                           .device = text_at(arena, st, 6),
                           .version = text_at(arena, st, 7),
                           .started = text_at(arena, st, 8),
                           .batch = batch,
                           .predicted_s = sqlite3_column_double(st, 14),
                           .planned_bytes = sqlite3_column_int64(st, 15),
                           .peak_bytes = sqlite3_column_int64(st, 16),
                           .rss_bytes = sqlite3_column_int64(st, 17)};
    if (s->scenario == HP_SCENARIOS) return fail_damaged(db, "a scenario of an unknown name", err);
    if (!in_range(h, 1 << 20) || !in_range(w, 1 << 20) || !in_range(batch, INT64_C(1) << 32) ||
        !in_range(threads, 1 << 20) || !in_range(ranks, 1 << 20))
        return fail_damaged(db, "a series with impossible sizes", err);
    for (int i = 15; i <= 17; i++)
        if (!in_range(sqlite3_column_int64(st, i), MOST_BYTES))
            return fail_damaged(db, "a series with impossible memory", err);
    s->image_h = (int32_t)h, s->image_w = (int32_t)w;
    s->threads = (int32_t)threads, s->ranks = (int32_t)ranks;
    return HP_OK;
}

/* ns must be positive: rates divide by it. */
static hp_status read_query(hp_db *db, sqlite3_stmt *st, hp_bench_query *q, hp_error *err) {
    const int64_t round = sqlite3_column_int64(st, 0), ns = sqlite3_column_int64(st, 1);
    if (round < 0 || round > 1 << 20 || !in_range(ns, INT64_C(1) << 50))
        return fail_damaged(db, "a query with impossible numbers", err);
    *q = (hp_bench_query){.round = (int32_t)round, .ns = ns};
    return HP_OK;
}

static hp_status read_queries(hp_arena *arena, hp_db *db, int64_t id, hp_bench_series *s, hp_error *err) {
    sqlite3_stmt *st = NULL;
    int n = 0, capacity = 0;
    bool row = true;
    HP_TRY(
        hp_db_prepare(db, "SELECT round, ns FROM latency WHERE bench = ? ORDER BY round, query", &st, err));
    hp_db_bind(st, "i", id);
    hp_status status = HP_OK;
    while (status == HP_OK && (status = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        HP_ROOM(arena, s->query, n, capacity);
        status = read_query(db, st, &s->query[n++], err);
    }
    sqlite3_finalize(st);
    s->n_query = n;
    if (status == HP_OK && n == 0) return fail_damaged(db, "a series without queries", err);
    return status;
}

hp_status hp_bench_read(hp_arena *arena, hp_db *db, hp_bench_series **s, int *n, hp_error *err) {
    sqlite3_stmt *st = NULL;
    int capacity = 0;
    bool row = true;
    *s = NULL;
    *n = 0;
    HP_TRY(hp_db_prepare(db,
                         "SELECT id, net, prec, scenario, strategy, machine, device, version, started, "
                         "image_h, image_w, batch,"
                         " threads, ranks, predicted_s, planned_bytes, peak_bytes, rss_bytes FROM bench "
                         "ORDER BY id",
                         &st, err));
    hp_status status = HP_OK;
    while (status == HP_OK && (status = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        HP_ROOM(arena, *s, *n, capacity);
        hp_bench_series *one = &(*s)[(*n)++];
        status = read_series(arena, db, st, one, err);
        if (status == HP_OK) status = read_queries(arena, db, sqlite3_column_int64(st, 0), one, err);
    }
    sqlite3_finalize(st);
    return status;
}

/* --- statistics --- */

static double *seconds(const hp_bench_query *q, int64_t n) {
    double *v = hp_zeroed((size_t)n, sizeof *v);
    for (int64_t i = 0; i < n; i++) v[i] = 1e-9 * (double)q[i].ns;
    return v;
}

static hp_serving serving_of(const hp_bench_query *q, int64_t n, int64_t batch) {
    double *v = seconds(q, n);
    const hp_serving f = hp_serving_of(v, n, batch);
    free(v);
    return f;
}

hp_serving hp_bench_pooled(const hp_bench_series *s) {
    return serving_of(s->query, s->n_query, s->batch);
}

hp_serving hp_bench_median(const hp_bench_series *s) {
    int n = 0;
    hp_serving *round = hp_zeroed((size_t)s->n_query, sizeof *round);
    for (int64_t first = 0, end; first < s->n_query; first = end) {
        end = first + 1;
        while (end < s->n_query && s->query[end].round == s->query[first].round) end++;
        round[n++] = serving_of(s->query + first, end - first, s->batch);
    }
    const hp_serving m = hp_serving_median(round, n);
    free(round);
    return m;
}

double hp_bench_tail(const hp_bench_series *s) {
    const int32_t permille = hp_scenario_infos[s->scenario].tail_permille;
    if (!permille) return NAN;
    double *v = seconds(s->query, s->n_query);
    hp_serving_of(v, s->n_query, s->batch); /* sorts */
    const double tail = hp_serving_early_stop(v, s->n_query, permille);
    free(v);
    return tail;
}
