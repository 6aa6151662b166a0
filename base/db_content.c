/* db_content.c - the checksum is the sum of one hash per row. */
#include "base/db_content.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint64_t hash_value(sqlite3_stmt *st, int column, uint64_t seed) {
    const int type = sqlite3_column_type(st, column);
    const uint64_t h = hp_hash64(&type, sizeof type, seed);
    if (type == SQLITE_INTEGER) {
        const int64_t v = sqlite3_column_int64(st, column);
        return hp_hash64(&v, sizeof v, h);
    }
    if (type == SQLITE_FLOAT) {
        const double v = sqlite3_column_double(st, column);
        return hp_hash64(&v, sizeof v, h);
    }
    const void *bytes = type == SQLITE_NULL ? NULL : sqlite3_column_blob(st, column);
    const int n = sqlite3_column_bytes(st, column);
    if (n > 0) hp_allocated((void *)(uintptr_t)bytes);
    return bytes && n > 0 ? hp_hash64(bytes, (size_t)n, h) : h;
}

/* A row's hash depends on its content, not on its position. */
static bool add_table(sqlite3 *sql, const char *table, uint64_t *sum) {
    sqlite3_stmt *st = NULL;
    const bool meta = strcmp(table, "meta") == 0;
    char *query = sqlite3_mprintf("SELECT * FROM \"%w\"%s", table, meta ? " WHERE key <> 'content'" : "");
    bool sound = query && sqlite3_prepare_v2(sql, query, -1, &st, NULL) == SQLITE_OK;
    int code = sound ? sqlite3_step(st) : SQLITE_ERROR;
    const uint64_t seed = hp_hash64(table, strlen(table), 1);
    for (; code == SQLITE_ROW; code = sqlite3_step(st)) {
        uint64_t row = seed;
        for (int c = 0; c < sqlite3_column_count(st); c++) row = hash_value(st, c, row);
        *sum += row;
    }
    sqlite3_finalize(st);
    sqlite3_free(query);
    return code == SQLITE_DONE;
}

bool hp_db_content(sqlite3 *sql, char out[HP_DB_CONTENT_TEXT]) {
    sqlite3_stmt *st = NULL;
    uint64_t sum = 0;
    bool sound = true;
    if (sqlite3_prepare_v2(sql,
                           "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
                           -1, &st, NULL) != SQLITE_OK)
        return false;
    while (sound && sqlite3_step(st) == SQLITE_ROW)
        sound = add_table(sql, (const char *)sqlite3_column_text(st, 0), &sum);
    sqlite3_finalize(st);
    snprintf(out, HP_DB_CONTENT_TEXT, "%016" PRIx64, sum);
    return sound;
}

bool hp_db_content_note(sqlite3 *sql) {
    char now[HP_DB_CONTENT_TEXT];
    sqlite3_stmt *st = NULL;
    bool done = hp_db_content(sql, now) &&
                sqlite3_prepare_v2(sql, "INSERT OR REPLACE INTO meta(key, value) VALUES('content', ?)", -1,
                                   &st, NULL) == SQLITE_OK;
    if (done) sqlite3_bind_text(st, 1, now, -1, SQLITE_STATIC);
    done = done && sqlite3_step(st) == SQLITE_DONE;
    sqlite3_finalize(st);
    return done;
}

bool hp_db_content_holds(sqlite3 *sql) {
    char now[HP_DB_CONTENT_TEXT];
    sqlite3_stmt *st = NULL;
    bool holds = false;
    if (sqlite3_prepare_v2(sql, "SELECT value FROM meta WHERE key = 'content'", -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW) {
        const char *noted = (const char *)sqlite3_column_text(st, 0);
        holds = noted && (strcmp(noted, "none") == 0 || (hp_db_content(sql, now) && strcmp(now, noted) == 0));
    }
    sqlite3_finalize(st);
    return holds;
}
