/* sample_store.c - a SQLite file to which each run is appended in one transaction. */
#include "costmodels/sample_store.h"

#include "costmodels/cost_samples.h"
#include "traces/trace_text.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define LONGEST_S 1e9
enum { APPLICATION = 0x68706c73 /* "hpls" */, WAIT_MS = 5000 };

/* kind: hp_row_infos; flags: 1 benchmark, 2 tiles. */
static const char schema[] =
    "CREATE TABLE origin(processor TEXT NOT NULL, jobs TEXT NOT NULL, since_s INTEGER NOT NULL) STRICT;"
    "INSERT INTO origin VALUES('', '', 0);"
    "CREATE TABLE held(id INTEGER PRIMARY KEY, job TEXT NOT NULL, time_s INTEGER NOT NULL, step_s REAL NOT "
    "NULL CHECK(step_s > 0), log_error REAL "
    "NOT NULL) STRICT;"
    "CREATE TABLE run(id INTEGER PRIMARY KEY, job TEXT NOT NULL, time_s INTEGER NOT NULL,"
    " computing INTEGER NOT NULL CHECK(computing > 0)) STRICT;"
    "CREATE TABLE reading(run INTEGER NOT NULL, yardstick TEXT NOT NULL, rank INTEGER NOT NULL, iter INTEGER "
    "NOT NULL,"
    " t_s REAL NOT NULL, seconds REAL NOT NULL CHECK(seconds > 0 AND seconds < 1e9)) STRICT;"
    "CREATE TABLE sample(run INTEGER NOT NULL, kind TEXT NOT NULL, class TEXT NOT NULL, key TEXT NOT NULL,"
    " size REAL NOT NULL CHECK(size >= 0), flops REAL NOT NULL CHECK(flops >= 0), bytes REAL NOT NULL "
    "CHECK(bytes >= 0),"
    " seconds REAL NOT NULL CHECK(seconds > 0 AND seconds < 1e9), variance REAL, ranks INTEGER NOT NULL,"
    " node_ranks INTEGER NOT NULL, flags INTEGER NOT NULL) STRICT;";

const char *hp_sample_store_path(const char *cost_path, char *out, size_t n) {
    const size_t length = strlen(cost_path);
    const bool suffix = length > 5 && strcmp(cost_path + length - 5, ".cost") == 0;
    snprintf(out, n, "%.*s.samples.db", (int)(suffix ? length - 5 : length), cost_path);
    return out;
}

/* --- opening --- */

static hp_status fail_open(const hp_db *db, const char *why, hp_error *err) {
    return hp_fail(err, HP_EDATA, "%s: %s; remove it, and hplan calibrate measures anew", db->path, why);
}

static hp_status execute(hp_db *db, const char *sql, hp_error *err) {
    const int code = sqlite3_exec(db->sql, sql, NULL, NULL, NULL) & 0xff;
    if (code == SQLITE_OK) return HP_OK;
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT) return fail_open(db, "not samples, or damaged", err);
    return hp_fail(err, HP_EIO, "%s: cannot be written: %s", db->path, sqlite3_errmsg(db->sql));
}

static hp_status read_number(hp_db *db, const char *sql, int64_t *value, hp_error *err) {
    sqlite3_stmt *st = NULL;
    const bool got =
        sqlite3_prepare_v2(db->sql, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW;
    if (got) *value = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return got ? HP_OK : fail_open(db, "not samples, or damaged", err);
}

/* *empty: a new file. */
static hp_status check_kind(hp_db *db, bool *empty, hp_error *err) {
    int64_t tables = 0, application = 0, version = 0;
    HP_TRY(read_number(db, "SELECT count(*) FROM sqlite_schema", &tables, err));
    HP_TRY(read_number(db, "PRAGMA application_id", &application, err));
    HP_TRY(read_number(db, "PRAGMA user_version", &version, err));
    *empty = tables == 0 && application == 0;
    if (*empty) return HP_OK;
    if (application != APPLICATION) return fail_open(db, "not samples of hplan calibrate", err);
    if (version != HP_SAMPLE_STORE_VERSION) return fail_open(db, "written by another version of hplan", err);
    return HP_OK;
}

static hp_status open_file(const char *path, int flags, hp_db *db, hp_error *err) {
    *db = (hp_db){.sql = NULL};
    snprintf(db->path, sizeof db->path, "%s", path);
    if (sqlite3_open_v2(path, &db->sql, flags, NULL) != SQLITE_OK) {
        hp_fail(err, HP_ECREATE, "%s: cannot be opened: %s", path,
                db->sql ? sqlite3_errmsg(db->sql) : "out of memory");
        hp_db_close(db);
        return HP_ECREATE;
    }
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_busy_timeout(db->sql, WAIT_MS);
    return HP_OK;
}

static hp_status is_of(hp_db *db, const char *processor, bool *same, hp_error *err) {
    sqlite3_stmt *st = NULL;
    bool row = false;
    HP_TRY(hp_db_prepare(db, "SELECT processor FROM origin", &st, err));
    const hp_status s = hp_db_next(db, st, &row, err);
    *same = s == HP_OK && row && strcmp(hp_db_text(st, 0), processor) == 0;
    sqlite3_finalize(st);
    return s;
}

static hp_status make_tables(hp_db *db, hp_error *err) {
    char pragmas[100];
    snprintf(pragmas, sizeof pragmas, "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION,
             HP_SAMPLE_STORE_VERSION);
    HP_TRY(execute(db, schema, err));
    return execute(db, pragmas, err);
}

/* Begins samples for this processor only. */
static hp_status begin(hp_db *db, const char *processor, hp_error *err) {
    bool empty = false, same = false;
    HP_TRY(execute(db, "BEGIN IMMEDIATE", err));
    HP_TRY(check_kind(db, &empty, err));
    if (empty) HP_TRY(make_tables(db, err));
    HP_TRY(is_of(db, processor, &same, err));
    if (same) return HP_OK;
    HP_TRY(execute(db, "DELETE FROM held; DELETE FROM run; DELETE FROM reading; DELETE FROM sample", err));
    return hp_db_exec(db, err, "UPDATE origin SET processor = ?, jobs = '', since_s = 0", "s", processor);
}

/* --- writing --- */

static hp_status write_readings(hp_db *db, int64_t id, const hp_sample_run *r, hp_error *err) {
    sqlite3_stmt *st = NULL;
    hp_status s = HP_OK;
    HP_TRY(hp_db_prepare(db, "INSERT INTO reading VALUES(?,?,?,?,?,?)", &st, err));
    for (int i = 0; i < r->n_reading && s == HP_OK; i++) {
        const hp_reading *x = &r->reading[i];
        hp_db_bind(st, "isiidd", id, hp_yardstick_names[x->yardstick], (int64_t)x->rank, (int64_t)x->iter,
                   x->t_s, x->seconds);
        s = hp_db_step_done(db, st, err);
    }
    sqlite3_finalize(st);
    return s;
}

static hp_status write_samples(hp_db *db, int64_t id, const hp_sample_list *l, hp_error *err) {
    sqlite3_stmt *st = NULL;
    hp_status s = HP_OK;
    HP_TRY(hp_db_prepare(db, "INSERT INTO sample VALUES(?,?,?,?,?,?,?,?,?,?,?,?)", &st, err));
    for (int i = 0; i < l->n && s == HP_OK; i++) {
        const hp_sample_row *x = &l->row[i];
        if (x->run != l->n_run - 1) continue;
        hp_db_bind(st, "isssdddddiii", id, hp_row_infos[x->kind].name, x->class, x->key, x->size, x->flops,
                   x->bytes, x->seconds, x->variance, (int64_t)x->ranks, (int64_t)x->node_ranks,
                   (int64_t)((x->benchmark ? 1 : 0) | (x->tiles ? 2 : 0)));
        s = hp_db_step_done(db, st, err);
    }
    sqlite3_finalize(st);
    return s;
}

/* Deletes older runs of the same job. */
static hp_status drop_old(hp_db *db, const char *job, hp_error *err) {
    static const char *const tables[] = {"reading", "sample"};
    for (int i = 0; i < 2; i++) {
        char sql[300];
        snprintf(sql, sizeof sql,
                 "DELETE FROM %s WHERE run IN (SELECT id FROM run WHERE job = ? ORDER BY id DESC LIMIT -1 "
                 "OFFSET %d)",
                 tables[i], HP_SAMPLE_STORE_KEPT);
        HP_TRY(hp_db_exec(db, err, sql, "s", job));
    }
    return hp_db_exec(
        db, err,
        "DELETE FROM run WHERE id IN (SELECT id FROM run WHERE job = ? ORDER BY id DESC LIMIT -1 OFFSET ?)",
        "si", job, (int64_t)HP_SAMPLE_STORE_KEPT);
}

static hp_status write_run(hp_db *db, const hp_sample_list *l, hp_error *err) {
    const hp_sample_run *r = &l->run[l->n_run - 1];
    HP_TRY(hp_db_exec(db, err, "INSERT INTO run VALUES(NULL,?,?,?)", "sii", r->job, r->time_s,
                      (int64_t)r->computing));
    const int64_t id = sqlite3_last_insert_rowid(db->sql);
    HP_TRY(write_readings(db, id, r, err));
    HP_TRY(write_samples(db, id, l, err));
    return drop_old(db, r->job, err);
}

hp_status hp_sample_store_append(const char *path, const char *processor, hp_calibration *c, hp_error *err) {
    hp_db db;
    HP_TRY(open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, err));
    hp_status s = begin(&db, processor, err);
    if (s == HP_OK) s = write_run(&db, hp_calibration_samples(c), err);
    if (s == HP_OK) s = execute(&db, "COMMIT", err);
    hp_db_close(&db);
    return s;
}

hp_status hp_sample_store_hold(const char *path, const char *processor, const char *job, int64_t time_s,
                               hp_held held, hp_error *err) {
    hp_db db;
    HP_TRY(open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, err));
    hp_status s = begin(&db, processor, err);
    if (s == HP_OK)
        s = hp_db_exec(&db, err, "INSERT INTO held VALUES(NULL,?,?,?,?)", "sidd", job, time_s, held.step_s,
                       held.log_error);
    if (s == HP_OK)
        s = hp_db_exec(&db, err, "DELETE FROM held WHERE id <= (SELECT max(id) FROM held) - ?", "i",
                       (int64_t)HP_SAMPLE_STORE_HELD);
    if (s == HP_OK) s = execute(&db, "COMMIT", err);
    hp_db_close(&db);
    return s;
}

/* --- a calibration of many runs --- */

static hp_status read_since(hp_db *db, const char *jobs, int64_t now_s, int64_t *since_s, hp_error *err) {
    sqlite3_stmt *st = NULL;
    bool row = false;
    *since_s = now_s;
    HP_TRY(hp_db_prepare(db, "SELECT since_s FROM origin WHERE jobs = ?", &st, err));
    hp_db_bind(st, "s", jobs);
    const hp_status s = hp_db_next(db, st, &row, err);
    if (s == HP_OK && row) *since_s = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return s;
}

hp_status hp_sample_store_begin(const char *path, const char *processor, const char *jobs, int64_t now_s,
                                int64_t *since_s, hp_error *err) {
    hp_db db;
    HP_TRY(open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, err));
    hp_status s = begin(&db, processor, err);
    if (s == HP_OK) s = read_since(&db, jobs, now_s, since_s, err);
    if (s == HP_OK) s = hp_db_exec(&db, err, "UPDATE origin SET jobs = ?, since_s = ?", "si", jobs, *since_s);
    if (s == HP_OK) s = execute(&db, "COMMIT", err);
    hp_db_close(&db);
    return s;
}

hp_status hp_sample_store_end(const char *path, hp_error *err) {
    hp_db db;
    HP_TRY(open_file(path, SQLITE_OPEN_READWRITE, &db, err));
    const hp_status s = execute(&db, "UPDATE origin SET jobs = '', since_s = 0", err);
    hp_db_close(&db);
    return s;
}

bool hp_calibration_has(const hp_calibration *c, const char *job, int64_t since_s) {
    const hp_sample_list *l = hp_calibration_samples((hp_calibration *)c);
    for (int i = 0; i < l->n_run; i++)
        if (l->run[i].time_s >= since_s && strcmp(l->run[i].job, job) == 0) return true;
    return false;
}

/* --- reading --- */

static int name_index(const char *name, const char *const *names, int n) {
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

static hp_status read_readings(hp_arena *arena, hp_db *db, int64_t id, hp_sample_run *r, hp_error *err) {
    sqlite3_stmt *st = NULL;
    bool row = false;
    int capacity = 0;
    hp_status s = HP_OK;
    HP_TRY(hp_db_prepare(
        db, "SELECT yardstick, rank, iter, t_s, seconds FROM reading WHERE run = ? ORDER BY rowid", &st,
        err));
    hp_db_bind(st, "i", id);
    while ((s = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        const int y = name_index(hp_db_text(st, 0), hp_yardstick_names, HP_SPEED_CLASSES);
        const double seconds = sqlite3_column_double(st, 4);
        if (y < 0 || !(seconds > 0 && seconds < LONGEST_S)) {
            s = fail_open(db, "damaged (an impossible reading)", err);
            break;
        }
        HP_ROOM(arena, r->reading, r->n_reading, capacity);
        r->reading[r->n_reading++] = (hp_reading){.yardstick = y,
                                                  .rank = sqlite3_column_int(st, 1),
                                                  .iter = sqlite3_column_int(st, 2),
                                                  .t_s = sqlite3_column_double(st, 3),
                                                  .seconds = seconds};
    }
    sqlite3_finalize(st);
    return s;
}

static bool is_possible(const hp_sample_row *x) {
    const double figure[] = {x->size, x->flops, x->bytes};
    for (int i = 0; i < 3; i++)
        if (!(figure[i] >= 0 && figure[i] < INFINITY)) return false;
    return x->seconds > 0 && x->seconds < LONGEST_S && (isnan(x->variance) || x->variance >= 0) &&
           x->ranks >= 0 && x->ranks <= HP_MAX_ROLES && x->node_ranks >= 0 && x->node_ranks <= HP_MAX_ROLES;
}

static hp_status read_sample(hp_db *db, sqlite3_stmt *st, hp_sample_list *l, hp_error *err) {
    int kind = 0;
    if (strcmp(hp_db_text(st, 0), "allreduce") == 0)
        return HP_OK; /* an older version's row, without its back end */
    while (kind < (int)HP_ROW_KINDS && strcmp(hp_row_infos[kind].name, hp_db_text(st, 0)) != 0) kind++;
    if (kind != HP_ROW_COMPUTE && kind != HP_ROW_P2P && kind != HP_ROW_COLLECTIVE)
        return fail_open(db, "damaged (a sample of no kind that is measured)", err);
    HP_ROOM(l->arena, l->row, l->n, l->capacity);
    hp_sample_row *x = &l->row[l->n++];
    *x = (hp_sample_row){.run = l->n_run - 1,
                         .kind = (hp_row_kind)kind,
                         .size = sqlite3_column_double(st, 3),
                         .flops = sqlite3_column_double(st, 4),
                         .bytes = sqlite3_column_double(st, 5),
                         .seconds = sqlite3_column_double(st, 6),
                         .variance =
                             sqlite3_column_type(st, 7) == SQLITE_NULL ? NAN : sqlite3_column_double(st, 7),
                         .ranks = sqlite3_column_int(st, 8),
                         .node_ranks = sqlite3_column_int(st, 9),
                         .benchmark = sqlite3_column_int(st, 10) & 1,
                         .tiles = sqlite3_column_int(st, 10) & 2};
    if (!is_possible(x)) return fail_open(db, "damaged (an impossible sample)", err);
    snprintf(x->class, sizeof x->class, "%s", hp_text_clean(l->arena, hp_db_text(st, 1)));
    snprintf(x->key, sizeof x->key, "%s", hp_text_clean(l->arena, hp_db_text(st, 2)));
    return HP_OK;
}

static hp_status read_samples(hp_db *db, int64_t id, hp_sample_list *l, hp_error *err) {
    sqlite3_stmt *st = NULL;
    bool row = false;
    hp_status s = HP_OK;
    HP_TRY(hp_db_prepare(
        db,
        "SELECT kind, class, key, size, flops, bytes, seconds, variance, ranks, node_ranks, flags"
        " FROM sample WHERE run = ? ORDER BY rowid",
        &st, err));
    hp_db_bind(st, "i", id);
    while (s == HP_OK && (s = hp_db_next(db, st, &row, err)) == HP_OK && row) s = read_sample(db, st, l, err);
    sqlite3_finalize(st);
    return s;
}

static hp_status read_runs(hp_db *db, hp_sample_list *l, hp_error *err) {
    sqlite3_stmt *st = NULL;
    bool row = false;
    hp_status s = HP_OK;
    HP_TRY(hp_db_prepare(db, "SELECT id, job, time_s, computing FROM run ORDER BY id", &st, err));
    while (s == HP_OK && (s = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        HP_ROOM(l->arena, l->run, l->n_run, l->run_capacity);
        hp_sample_run *r = &l->run[l->n_run++];
        *r = (hp_sample_run){.time_s = sqlite3_column_int64(st, 2), .computing = sqlite3_column_int(st, 3)};
        snprintf(r->job, sizeof r->job, "%s", hp_text_clean(l->arena, hp_db_text(st, 1)));
        if (r->computing < 1 || r->computing > HP_MAX_ROLES) {
            s = fail_open(db, "damaged (an impossible run)", err);
            break;
        }
        s = read_readings(l->arena, db, sqlite3_column_int64(st, 0), r, err);
        if (s == HP_OK) s = read_samples(db, sqlite3_column_int64(st, 0), l, err);
    }
    sqlite3_finalize(st);
    return s;
}

static hp_status read_held(hp_db *db, hp_calibration *c, hp_error *err) {
    static const double MOST = 10; /* bound of the logarithm: no measurement is that far off */
    sqlite3_stmt *st = NULL;
    bool row = false;
    hp_status s = HP_OK;
    HP_TRY(hp_db_prepare(db, "SELECT step_s, log_error FROM held ORDER BY id", &st, err));
    while (s == HP_OK && (s = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        const hp_held held = {.step_s = sqlite3_column_double(st, 0),
                              .log_error = sqlite3_column_double(st, 1)};
        if (fabs(held.log_error) <= MOST && held.step_s > 0)
            hp_calibration_hold(c, held);
        else
            s = fail_open(db, "damaged (an impossible error)", err);
    }
    sqlite3_finalize(st);
    return s;
}

static hp_status check_content(hp_db *db, hp_error *err) {
    sqlite3_stmt *st = NULL;
    bool sound = false;
    if (sqlite3_prepare_v2(db->sql, "PRAGMA quick_check(1)", -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        sound = strcmp(hp_db_text(st, 0), "ok") == 0;
    sqlite3_finalize(st);
    return sound ? HP_OK : fail_open(db, "damaged (SQLite's check failed)", err);
}

hp_status hp_sample_store_read(const char *path, const char *processor, hp_calibration *c, bool *other,
                               hp_error *err) {
    struct stat st;
    hp_db db;
    bool empty = false, same = true;
    *other = false;
    if (stat(path, &st) != 0) return HP_OK;
    if (!S_ISREG(st.st_mode)) return hp_fail(err, HP_EDATA, "%s: not a file", path);
    if (open_file(path, SQLITE_OPEN_READWRITE, &db, err) != HP_OK) return HP_EDATA;
    hp_status s = check_kind(&db, &empty, err);
    if (s == HP_OK && !empty) s = check_content(&db, err);
    if (s == HP_OK && !empty) s = is_of(&db, processor, &same, err);
    if (s == HP_OK && !empty && same) s = read_runs(&db, hp_calibration_samples(c), err);
    if (s == HP_OK && !empty && same) s = read_held(&db, c, err);
    hp_db_close(&db);
    *other = !same;
    return s;
}
