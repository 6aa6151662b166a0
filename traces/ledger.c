/* ledger.c - appends to the history and reads it. The file has a rollback journal, not a write-ahead log:
 * home folders may be on network file systems, where processes cannot share memory (sqlite.org/wal.html). */
#include "traces/ledger.h"

#include "base/db.h"
#include "base/host.h"
#include "traces/trace_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LEDGER_APPLICATION = 0x68706c68 /* "hplh" */, WAIT_MS = 5000 };

static const char schema[] = "CREATE TABLE run(id INTEGER PRIMARY KEY"
#define TEXT(name)   ", " #name " TEXT NOT NULL"
#define COUNT(name)  ", " #name " INTEGER NOT NULL CHECK(" #name " > 0)"
#define TIME(name)   ", " #name " REAL NOT NULL CHECK(" #name " > 0 AND " #name " < 1e9)"
#define FIGURE(name) ", " #name " REAL CHECK(" #name " >= 0 AND " #name " < 1e9)"
#include "traces/ledger.def"
#undef TEXT
#undef COUNT
#undef TIME
#undef FIGURE
                             ") STRICT";

const char *hp_ledger_path(char *out, size_t n) {
    return hp_user_path("XDG_STATE_HOME", ".local/state", "history.db", out, n);
}

/* --- opening --- */

static hp_status fail_open(const hp_db *db, const char *why, hp_error *err) {
    return hp_fail(err, HP_EDATA, "%s: %s; remove it to begin a new history", db->path, why);
}

/* Creates the folders above a file if necessary. A failure shows when the file is opened. */
static void make_folders(const char *path) {
    char folder[HP_NEW_FILE_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0777);
        *slash = '/';
    }
}

/* Nothing that the file contains gets executed. */
static void harden(sqlite3 *sql) {
    sqlite3_db_config(sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(sql, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(sql, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(sql, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_busy_timeout(sql, WAIT_MS);
}

static hp_status open_file(const char *path, int flags, hp_db *db, hp_error *err) {
    *db = (hp_db){.sql = NULL};
    if (snprintf(db->path, sizeof db->path, "%s", path) >= (int)sizeof db->path)
        return hp_fail(err, HP_EDATA, "the history's path is longer than %zu bytes", sizeof db->path - 1);
    if (sqlite3_open_v2(path, &db->sql, flags, NULL) == SQLITE_OK) {
        harden(db->sql);
        return HP_OK;
    }
    hp_fail(err, HP_ECREATE, "%s: cannot be opened: %s", path,
            db->sql ? sqlite3_errmsg(db->sql) : "out of memory");
    hp_db_close(db);
    return HP_ECREATE;
}

static hp_status read_number(hp_db *db, const char *pragma, int64_t *value, hp_error *err) {
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db->sql, pragma, -1, &st, NULL) != SQLITE_OK || sqlite3_step(st) != SQLITE_ROW) {
        const int code = sqlite3_errcode(db->sql) & 0xff;
        sqlite3_finalize(st);
        if (code == SQLITE_BUSY)
            return hp_fail(err, HP_EIO, "%s: other runs keep it locked for more than %d s", db->path,
                           WAIT_MS / 1000);
        return fail_open(db, code == SQLITE_NOTADB ? "not a history, or damaged" : sqlite3_errmsg(db->sql),
                         err);
    }
    *value = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return HP_OK;
}

/* *empty: a new file without a table. */
static hp_status check_kind(hp_db *db, bool *empty, hp_error *err) {
    int64_t tables = 0, application = 0, version = 0;
    HP_TRY(read_number(db, "SELECT count(*) FROM sqlite_schema", &tables, err));
    HP_TRY(read_number(db, "PRAGMA application_id", &application, err));
    HP_TRY(read_number(db, "PRAGMA user_version", &version, err));
    *empty = tables == 0 && application == 0;
    if (*empty) return HP_OK;
    if (application != LEDGER_APPLICATION) return fail_open(db, "not a history of hplan", err);
    if (version != HP_LEDGER_VERSION)
        return hp_fail(err, HP_EDATA,
                       "%s: a history in format %lld, this version has %d; move it away to begin a new one",
                       db->path, (long long)version, HP_LEDGER_VERSION);
    return HP_OK;
}

/* --- appending --- */

static hp_status execute(hp_db *db, const char *sql, hp_error *err) {
    const int code = sqlite3_exec(db->sql, sql, NULL, NULL, NULL) & 0xff;
    if (code == SQLITE_OK) return HP_OK;
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
        return fail_open(db, "not a history, or damaged", err);
    return hp_fail(err, HP_EIO, "%s: cannot be written: %s", db->path, sqlite3_errmsg(db->sql));
}

static hp_status insert(hp_db *db, const hp_ledger_entry *e, hp_error *err) {
    static const char sql[] = "INSERT INTO run VALUES(NULL"
#define TEXT(name)   ",?"
#define COUNT(name)  ",?"
#define TIME(name)   ",?"
#define FIGURE(name) ",?"
#include "traces/ledger.def"
#undef TEXT
#undef COUNT
#undef TIME
#undef FIGURE
                              ")";
    sqlite3_stmt *st = NULL;
    int i = 1;
    HP_TRY(hp_db_prepare(db, sql, &st, err));
#define TEXT(name)   sqlite3_bind_text(st, i++, e->name ? e->name : "", -1, SQLITE_TRANSIENT);
#define COUNT(name)  sqlite3_bind_int64(st, i++, e->name);
#define TIME(name)   sqlite3_bind_double(st, i++, e->name);
#define FIGURE(name) sqlite3_bind_double(st, i++, e->name); /* SQLite stores NaN as NULL */
#include "traces/ledger.def"
#undef TEXT
#undef COUNT
#undef TIME
#undef FIGURE
    const hp_status s = hp_db_step_done(db, st, err);
    sqlite3_finalize(st);
    return s;
}

static hp_status begin(hp_db *db, hp_error *err) {
    bool empty = false;
    char pragmas[100];
    HP_TRY(execute(db, "BEGIN IMMEDIATE", err));
    HP_TRY(check_kind(db, &empty, err));
    if (!empty) return HP_OK;
    snprintf(pragmas, sizeof pragmas, "PRAGMA application_id=%d; PRAGMA user_version=%d", LEDGER_APPLICATION,
             HP_LEDGER_VERSION);
    HP_TRY(execute(db, schema, err));
    return execute(db, pragmas, err);
}

hp_status hp_ledger_append(const char *path, const hp_ledger_entry *e, hp_error *err) {
    hp_db db;
    make_folders(path);
    HP_TRY(open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, err));
    hp_status s = begin(&db, err);
    if (s == HP_OK) s = insert(&db, e, err);
    if (s == HP_OK) s = execute(&db, "COMMIT", err);
    hp_db_close(&db);
    return s;
}

/* --- reading --- */

static double number_at(sqlite3_stmt *st, int column) {
    return sqlite3_column_type(st, column) == SQLITE_NULL ? NAN : sqlite3_column_double(st, column);
}

static hp_ledger_entry read_entry(hp_arena *arena, sqlite3_stmt *st) {
    hp_ledger_entry e;
    int i = 0;
#define TEXT(name)   e.name = hp_text_clean(arena, hp_db_text(st, i++));
#define COUNT(name)  e.name = sqlite3_column_int64(st, i++);
#define TIME(name)   e.name = sqlite3_column_double(st, i++);
#define FIGURE(name) e.name = number_at(st, i++);
#include "traces/ledger.def"
#undef TEXT
#undef COUNT
#undef TIME
#undef FIGURE
    return e;
}

static hp_status read_rows(hp_arena *arena, hp_db *db, hp_ledger_entry **e, int *n, hp_error *err) {
    static const char sql[] = "SELECT "
#define TEXT(name)   #name ", "
#define COUNT(name)  #name ", "
#define TIME(name)   #name ", "
#define FIGURE(name) #name ", "
#include "traces/ledger.def"
#undef TEXT
#undef COUNT
#undef TIME
#undef FIGURE
                              "id FROM run ORDER BY id";
    sqlite3_stmt *st = NULL;
    int capacity = 0;
    bool row = true;
    hp_status s = HP_OK;
    HP_TRY(hp_db_prepare(db, sql, &st, err));
    while ((s = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        HP_ROOM(arena, *e, *n, capacity);
        (*e)[(*n)++] = read_entry(arena, st);
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

hp_status hp_ledger_read(hp_arena *arena, const char *path, hp_ledger_entry **e, int *n, hp_error *err) {
    struct stat st;
    hp_db db;
    bool empty = false;
    *e = NULL;
    *n = 0;
    if (stat(path, &st) != 0) return HP_OK;
    if (!S_ISREG(st.st_mode)) return hp_fail(err, HP_EDATA, "%s: not a file", path);
    if (open_file(path, SQLITE_OPEN_READWRITE, &db, err) != HP_OK) return HP_EDATA;
    hp_status s = check_kind(&db, &empty, err);
    if (s == HP_OK && !empty) s = check_content(&db, err);
    if (s == HP_OK && !empty) s = read_rows(arena, &db, e, n, err);
    hp_db_close(&db);
    return s;
}
