/* db.c - opens, checks and writes hplan's SQLite files. Hardening for untrusted files follows
 * sqlite.org/security.html. */
#include "base/db.h"

#include "base/alloc.h"
#include "base/db_content.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT_ROW_BYTES = 1 << 30, HEAP_CAP_MIB = 4096 };

static hp_status db_fail(hp_db *db, hp_status code, const char *doing, hp_error *err) {
    return hp_fail(err, code, "%s: %s: %s", db->path, doing,
                   db->sql ? sqlite3_errmsg(db->sql) : "out of memory");
}

/* Distinguishes an environment error (disk full) from an error in the database. */
static hp_status db_fail_write(hp_db *db, const char *doing, hp_error *err) {
    const int rc = sqlite3_errcode(db->sql);
    if (rc == SQLITE_FULL || rc == SQLITE_IOERR)
        return hp_fail(err, HP_EIO,
                       "%s: %s: no space left or the disk failed; free some space or write elsewhere",
                       db->path, doing);
    return db_fail(db, HP_EIO, doing, err);
}

static hp_status db_run(hp_db *db, const char *sql, hp_status code, const char *doing, hp_error *err) {
    if (sqlite3_exec(db->sql, sql, NULL, NULL, NULL) != SQLITE_OK) return db_fail(db, code, doing, err);
    return HP_OK;
}

static void db_harden(sqlite3 *sql) {
    sqlite3_db_config(sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(sql, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(sql, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(sql, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(sql, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_limit(sql, SQLITE_LIMIT_LENGTH, LIMIT_ROW_BYTES);
    sqlite3_limit(sql, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(sql, SQLITE_LIMIT_TRIGGER_DEPTH, 0);
}

/* Creates an empty file beside `path` that no other process uses. */
static hp_status db_open_new(const char *path, hp_db *db, hp_error *err) {
    int fd;
    memset(db, 0, sizeof *db);
    HP_TRY(hp_new_file_check_database(path, err));
    HP_TRY(hp_new_file_create(path, db->tmp, &fd, err));
    close(fd);
    snprintf(db->path, sizeof db->path, "%s", path);
    if (sqlite3_open_v2(db->tmp, &db->sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, NULL) != SQLITE_OK)
        return hp_fail(err, HP_ECREATE, "%s: cannot create: %s; check that the folder exists and is writable",
                       path, db->sql ? sqlite3_errmsg(db->sql) : "out of memory");
    db_harden(db->sql);
    return HP_OK;
}

static hp_status db_begin(hp_db *db, const char *pragmas, const char *schema, hp_error *err) {
    if (sqlite3_exec(db->sql, "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF", NULL, NULL, NULL) ==
            SQLITE_OK &&
        sqlite3_exec(db->sql, pragmas, NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_exec(db->sql, schema, NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_exec(db->sql, "BEGIN", NULL, NULL, NULL) == SQLITE_OK)
        return HP_OK;
    db_fail_write(db, "cannot write", err);
    return HP_EIO;
}

static hp_status db_create(const char *path, const char *pragmas, const char *schema, hp_db *db,
                           hp_error *err) {
    hp_status s = db_open_new(path, db, err);
    if (s == HP_OK) s = db_begin(db, pragmas, schema, err);
    if (s != HP_OK) hp_db_close(db);
    return s;
}

hp_status hp_db_create(const char *path, hp_db *db, hp_error *err) {
    char pragmas[80];
    snprintf(pragmas, sizeof pragmas, "PRAGMA application_id=%d; PRAGMA user_version=%d", HP_DB_APPLICATION,
             HP_DB_VERSION);
    HP_TRY(db_create(path, pragmas, hp_db_schema, db, err));
    db->ours = true;
    return HP_OK;
}

hp_status hp_db_create_other(const char *path, const char *schema, hp_db *db, hp_error *err) {
    return db_create(path, "", schema, db, err);
}

/* The schema of an open database as one string, from its sqlite_schema. */
static char *db_schema_text(sqlite3 *sql) {
    sqlite3_stmt *st = NULL;
    char *all = NULL;
    if (sqlite3_prepare_v2(sql, "SELECT type, name, coalesce(sql,'') FROM sqlite_schema ORDER BY name", -1,
                           &st, NULL) == SQLITE_OK) {
        all = sqlite3_mprintf("");
        while (sqlite3_step(st) == SQLITE_ROW && all) {
            char *longer = sqlite3_mprintf("%s%s|%s|%s\n", all, sqlite3_column_text(st, 0),
                                           sqlite3_column_text(st, 1), sqlite3_column_text(st, 2));
            sqlite3_free(all);
            all = longer;
        }
    }
    sqlite3_finalize(st);
    return all;
}

static bool db_schema_is_ours(sqlite3 *sql) {
    sqlite3 *model = NULL;
    bool same = false;
    if (sqlite3_open_v2(":memory:", &model, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) == SQLITE_OK &&
        sqlite3_exec(model, hp_db_schema, NULL, NULL, NULL) == SQLITE_OK) {
        char *want = db_schema_text(model), *have = db_schema_text(sql);
        same = want && have && strcmp(want, have) == 0;
        sqlite3_free(want);
        sqlite3_free(have);
    }
    sqlite3_close(model);
    return same;
}

static int64_t db_pragma(sqlite3 *sql, const char *pragma) {
    sqlite3_stmt *st = NULL;
    int64_t v = -1;
    if (sqlite3_prepare_v2(sql, pragma, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        v = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return v;
}

static hp_status db_verify(hp_db *db, hp_error *err) {
    sqlite3_exec(db->sql, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;", NULL, NULL, NULL);
    const int64_t application = db_pragma(db->sql, "PRAGMA application_id");
    if (application != HP_DB_APPLICATION)
        return hp_fail(err, HP_EDATA,
                       "%s: not a file written by hplan; give a plan.db from `hplan simulate` or a run.db "
                       "from `hplan run`",
                       db->path);
    const int64_t version = db_pragma(db->sql, "PRAGMA user_version");
    if (version != HP_DB_VERSION)
        return hp_fail(err, HP_EDATA,
                       "%s: written in format %lld, this version reads %d; write it again with this version",
                       db->path, (long long)version, HP_DB_VERSION);
    sqlite3_stmt *st = NULL;
    bool sound = false;
    if (sqlite3_prepare_v2(db->sql, "PRAGMA quick_check(1)", -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        sound = strcmp((const char *)sqlite3_column_text(st, 0), "ok") == 0;
    sqlite3_finalize(st);
    if (!sound)
        return hp_fail(err, HP_EDATA, "%s: the file is damaged (SQLite's check failed); write it again",
                       db->path);
    if (!db_schema_is_ours(db->sql))
        return hp_fail(err, HP_EDATA, "%s: its tables are not hplan's; write it again with this version",
                       db->path);
    if (!hp_db_content_holds(db->sql))
        return hp_fail(err, HP_EDATA,
                       "%s: holds something else than hplan wrote (damaged, or changed by another program); "
                       "write it again",
                       db->path);
    return HP_OK;
}

static hp_status db_open(const char *path, int flags, hp_db *db, hp_error *err) {
    memset(db, 0, sizeof *db);
    if (snprintf(db->path, sizeof db->path, "%s", path) >= (int)sizeof db->path)
        return hp_fail(err, HP_EDATA, "path is longer than %zu bytes", sizeof db->path - 1);
    struct stat st;
    if (stat(path, &st) != 0)
        return hp_fail(err, HP_EDATA, "%s: no such file; `hplan simulate` writes plans, `hplan run` traces",
                       path);
    if (!S_ISREG(st.st_mode)) return hp_fail(err, HP_EDATA, "%s: not a regular file", path);
    sqlite3_soft_heap_limit64((sqlite3_int64)HEAP_CAP_MIB << 20);
    char resolved[4097];
    if (!realpath(path, resolved)) return hp_fail(err, HP_EDATA, "%s: cannot be resolved", path);
    if (sqlite3_open_v2(resolved, &db->sql, flags | SQLITE_OPEN_NOFOLLOW, NULL) != SQLITE_OK) {
        db_fail(db, HP_EDATA, "cannot open", err);
        hp_db_close(db);
        return HP_EDATA;
    }
    db_harden(db->sql);
    const hp_status s = db_verify(db, err);
    if (s != HP_OK) hp_db_close(db);
    return s;
}

hp_status hp_db_open(const char *path, hp_db *db, hp_error *err) {
    return db_open(path, SQLITE_OPEN_READONLY, db, err);
}

hp_status hp_db_open_rw(const char *path, hp_db *db, hp_error *err) {
    HP_TRY(db_open(path, SQLITE_OPEN_READWRITE, db, err));
    db->ours = true;
    const hp_status s = db_run(db, "BEGIN IMMEDIATE", HP_EIO, "cannot write", err);
    if (s != HP_OK) hp_db_close(db);
    return s;
}

static hp_status db_sync_rename(hp_db *db, hp_error *err) {
    HP_TRY(hp_new_file_commit(db->tmp, db->path, err));
    db->tmp[0] = 0;
    return HP_OK;
}

hp_status hp_db_commit(hp_db *db, hp_error *err) {
    if (db->ours && !hp_db_content_note(db->sql)) return db_fail_write(db, "cannot write", err);
    if (sqlite3_exec(db->sql, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        return db_fail_write(db, "cannot write", err);
    if (!db->tmp[0]) return HP_OK;
    sqlite3_close(db->sql);
    db->sql = NULL;
    return db_sync_rename(db, err);
}

void hp_db_close(hp_db *db) {
    if (db->sql) sqlite3_close_v2(db->sql);
    db->sql = NULL;
    if (db->tmp[0]) unlink(db->tmp);
    db->tmp[0] = 0;
}

hp_status hp_db_prepare(hp_db *db, const char *sql, sqlite3_stmt **st, hp_error *err) {
    if (sqlite3_prepare_v2(db->sql, sql, -1, st, NULL) != SQLITE_OK)
        return db_fail(db, HP_EDATA, "cannot read", err);
    return HP_OK;
}

/* A value that could not be bound would be stored as NULL. */
static void db_bind_list(sqlite3_stmt *st, const char *types, va_list ap) {
    for (int i = 0; types[i]; i++) {
        int code;
        if (types[i] == 'i') {
            code = sqlite3_bind_int64(st, i + 1, va_arg(ap, int64_t));
        } else if (types[i] == 'd') {
            code = sqlite3_bind_double(st, i + 1, va_arg(ap, double));
        } else if (types[i] == 's') {
            code = sqlite3_bind_text(st, i + 1, va_arg(ap, const char *), -1, SQLITE_TRANSIENT);
        } else {
            HP_ASSERT(types[i] == 'b');
            const void *p = va_arg(ap, const void *);
            code = sqlite3_bind_blob(st, i + 1, p, va_arg(ap, int), SQLITE_TRANSIENT);
        }
        if (code == SQLITE_NOMEM) hp_allocated(NULL);
    }
}

void hp_db_bind(sqlite3_stmt *st, const char *types, ...) {
    va_list ap;
    va_start(ap, types);
    db_bind_list(st, types, ap);
    va_end(ap);
}

hp_status hp_db_step_done(hp_db *db, sqlite3_stmt *st, hp_error *err) {
    const int rc = sqlite3_step(st);
    const hp_status s = rc == SQLITE_DONE ? HP_OK : db_fail_write(db, "cannot write", err);
    sqlite3_reset(st);
    return s;
}

hp_status hp_db_exec(hp_db *db, hp_error *err, const char *sql, const char *types, ...) {
    sqlite3_stmt *st = NULL;
    HP_TRY(hp_db_prepare(db, sql, &st, err));
    va_list ap;
    va_start(ap, types);
    db_bind_list(st, types, ap);
    va_end(ap);
    const hp_status s = hp_db_step_done(db, st, err);
    sqlite3_finalize(st);
    return s;
}

hp_status hp_db_next(hp_db *db, sqlite3_stmt *st, bool *row, hp_error *err) {
    const int rc = sqlite3_step(st);
    *row = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) return db_fail(db, HP_EDATA, "cannot read", err);
    return HP_OK;
}

const char *hp_db_text(sqlite3_stmt *st, int column) {
    if (sqlite3_column_type(st, column) == SQLITE_NULL) return "";
    return hp_allocated((char *)(uintptr_t)sqlite3_column_text(st, column));
}
