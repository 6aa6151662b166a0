/* cost_stored.c - cost tables as rows of plan.db. Part 0 is the requested table; part n is consulted where
 * part n - 1 has no row. Each part has its hash, so that a flipped digit is a rejected table, never another
 * prediction. */
#include "costmodels/cost_stored.h"

#include "costmodels/cost_rows.h"
#include "base/hash.h"
#include "base/input.h"
#include "traces/trace_text.h"

#include <stdlib.h>
#include <string.h>

static hp_status write_part(hp_db *db, int64_t part, const hp_cost_table *t, hp_error *err) {
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f) return hp_fail(err, HP_EINTERNAL, "no memory to write a cost table");
    hp_status s = hp_rows_print(f, t, true, err);
    fclose(f);
    if (s == HP_OK)
        s = hp_db_exec(db, err, "INSERT INTO cost(part, origin, body, hash) VALUES(?,?,?,?)", "isss", part,
                       hp_cost_origin(t), text, hp_hash_bytes(text, size).hex);
    free(text);
    return s;
}

hp_status hp_cost_store(hp_db *db, const hp_cost_table *t, hp_error *err) {
    for (int64_t part = 0; t; t = t->base, part++) HP_TRY(write_part(db, part, t, err));
    return HP_OK;
}

static hp_status read_part(hp_arena *arena, hp_db *db, sqlite3_stmt *st, hp_cost_table **t, hp_error *err) {
    const char *text = hp_arena_strdup(arena, hp_db_text(st, 1));
    if (strcmp(hp_hash_bytes(text, strlen(text)).hex, hp_db_text(st, 2)) != 0)
        return hp_fail(err, HP_EDATA, "%s: damaged: its cost table does not match its hash", db->path);
    HP_TRY(hp_rows_parse(arena, text, db->path, t, err));
    (*t)->origin = hp_text_clean(arena, hp_db_text(st, 0));
    return HP_OK;
}

hp_status hp_cost_restore(hp_arena *arena, hp_db *db, hp_cost_table **t, hp_error *err) {
    sqlite3_stmt *st = NULL;
    bool row = false;
    hp_status s = HP_OK;
    hp_cost_table *last = NULL, *next = NULL;
    *t = NULL;
    HP_TRY(hp_db_prepare(db, "SELECT origin, body, hash FROM cost ORDER BY part", &st, err));
    while ((s = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        if ((s = read_part(arena, db, st, &next, err)) != HP_OK) break;
        if (last)
            last->base = next;
        else
            *t = next;
        last = next;
    }
    sqlite3_finalize(st);
    HP_TRY(s);
    return *t ? HP_OK
              : hp_fail(err, HP_EDATA, "%s: holds no cost table: it is not a plan of `hplan simulate`",
                        db->path);
}

static bool is_database(const char *path) {
    static const char magic[] = "SQLite format 3"; /* including the terminating zero */
    char begin[sizeof magic] = "";
    FILE *f = hp_input_fopen(path);
    if (!f) return false;
    const bool read = fread(begin, sizeof begin, 1, f) == 1;
    fclose(f);
    return read && memcmp(begin, magic, sizeof magic) == 0;
}

hp_status hp_cost_open(hp_arena *arena, const char *path, hp_cost_table **t, hp_error *err) {
    hp_db db = {0};
    if (!is_database(path)) return hp_cost_load(arena, path, NULL, t, err);
    HP_TRY(hp_db_open(path, &db, err));
    const hp_status s = hp_cost_restore(arena, &db, t, err);
    hp_db_close(&db);
    return s;
}
