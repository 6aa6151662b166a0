/* db.h - SQLite files that may come from untrusted sources: one schema for plan.db and run.db, opened
 * hardened.
 *
 * Every file that hplan writes has application_id HP_DB_APPLICATION, user_version HP_DB_VERSION and exactly
 * the STRICT tables of schema.c. A file with any other schema is rejected, as is one whose content has
 * changed (db_content.h). Writes go to a temporary file that hp_db_commit renames, so an earlier file
 * survives every failure. */
#ifndef HP_DB_H
#define HP_DB_H

#include "base/new_file.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { HP_DB_APPLICATION = 0x68706c6e /* "hpln" */, HP_DB_VERSION = 11 };

typedef struct hp_db {
    sqlite3 *sql;
    char path[HP_NEW_FILE_PATH];     /* final name */
    char tmp[HP_NEW_FILE_TEMPORARY]; /* name while being written; "" when opened for reading or in place */
    bool ours;                       /* created with schema.c's schema; its checksum is stored at commit */
} hp_db;

extern const char hp_db_schema[]; /* the schema in schema.c */

/* Creates a file beside `path` with the schema and begins a transaction. Errors: HP_ECREATE, HP_EIO. */
hp_status hp_db_create(const char *path, hp_db *db, hp_error *err);
/* Like hp_db_create, with the schema of another program (SQL). */
hp_status hp_db_create_other(const char *path, const char *schema, hp_db *db, hp_error *err);
/* Opens a database for reading, hardened: read-only, no-follow, defensive, untrusted schema, no triggers,
 * views or extensions, quick_check, schema equal to ours. Errors: HP_EDATA (missing, foreign, corrupted),
 * naming the file and the fix. */
hp_status hp_db_open(const char *path, hp_db *db, hp_error *err);
/* Opens a database with the same checks for appending (merging into run.db) and begins a transaction. */
hp_status hp_db_open_rw(const char *path, hp_db *db, hp_error *err);
/* Commits, syncs a created file and renames it to its final name. Errors: HP_EIO (disk full); an earlier file
 * survives. */
hp_status hp_db_commit(hp_db *db, hp_error *err);
/* Closes the database. Removes an uncommitted created file; rolls back an uncommitted change. Safe on a
 * zeroed hp_db. */
void hp_db_close(hp_db *db);

/* Statements with bound parameters only. `types`: one letter per argument: i int64_t, d double, s const char*
 * (NULL = null), b (const void*, int size). Example: hp_db_bind(st, "isd", (int64_t)1, "x", 2.5). */
hp_status hp_db_prepare(hp_db *db, const char *sql, sqlite3_stmt **st, hp_error *err);
void hp_db_bind(sqlite3_stmt *st, const char *types, ...);
/* Steps a statement that returns no rows, then resets it. Errors: HP_EIO. */
hp_status hp_db_step_done(hp_db *db, sqlite3_stmt *st, hp_error *err);
/* Prepare + bind + step + finalize. */
hp_status hp_db_exec(hp_db *db, hp_error *err, const char *sql, const char *types, ...);
/* Steps to the next row; *row is false at the end. Errors: HP_EDATA. */
hp_status hp_db_next(hp_db *db, sqlite3_stmt *st, bool *row, hp_error *err);
const char *hp_db_text(sqlite3_stmt *st, int column); /* "" for NULL; valid until the next step */

#endif
