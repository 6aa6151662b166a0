/* candidates.c - the search's tables: candidates and rejects. */
#include "base/front.h"
#include "plan/store/store.h"

#include <string.h>

/* Writes the ranks of the Pareto-optimal candidates as a JSON array. */
static hp_status write_front(hp_db *db, const hp_candidate *c, int n, hp_error *err) {
    enum { RANK_TEXT = 12 };
    hp_arena *scratch = hp_arena_new();
    hp_front_point *p = HP_NEW(scratch, hp_front_point, n + 1);
    int *front = HP_NEW(scratch, int, n + 1);
    for (int i = 0; i < n; i++)
        p[i] = (hp_front_point){c[i].images_per_s, (double)c[i].memory_bytes, c[i].gpus};
    const int n_front = hp_front(scratch, p, n, front);
    const size_t size = 3 + (size_t)n_front * RANK_TEXT;
    char *text = HP_NEW(scratch, char, size), *end = text;
    *end = '\0';
    for (int i = 0; i < n_front; i++) end += sprintf(end, "%s%d", i ? "," : "[", front[i] + 1);
    strcpy(end, n_front ? "]" : "[]");
    const hp_status s = hp_db_exec(db, err, "INSERT OR REPLACE INTO meta VALUES('front', ?)", "s", text);
    hp_arena_free(scratch);
    return s;
}

hp_status hp_candidates_write(hp_db *db, const hp_candidate *c, int n, const hp_rejected *r, int n_rejected,
                              hp_error *err) {
    for (int i = 0; i < n; i++)
        HP_TRY(hp_db_exec(db, err, "INSERT INTO candidate VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                          "isiiddddiddidddddiis", (int64_t)(i + 1), c[i].strategy, (int64_t)c[i].gpus,
                          c[i].batch, c[i].step_s, c[i].step_low_s, c[i].step_high_s, c[i].images_per_s,
                          c[i].memory_bytes, c[i].bubble, c[i].exposed_comm, c[i].comm_bytes,
                          c[i].measured_share, c[i].step_quiet_s, c[i].measured_s, c[i].measured_low_s,
                          c[i].measured_high_s, (int64_t)c[i].rounds, (int64_t)c[i].tie, c[i].note));
    for (int i = 0; i < n_rejected; i++)
        HP_TRY(hp_db_exec(db, err, "INSERT INTO rejected VALUES(?,?,?,?,?)", "sisss",
                          hp_reject_text(r[i].code), r[i].count, r[i].example, r[i].limit, r[i].fix));
    return write_front(db, c, n, err);
}

static void copy_text(char *out, size_t n, sqlite3_stmt *st, int column) {
    snprintf(out, n, "%s", hp_db_text(st, column));
}

static hp_candidate read_candidate(sqlite3_stmt *st) {
    hp_candidate c = {.gpus = sqlite3_column_int(st, 1),
                      .batch = sqlite3_column_int64(st, 2),
                      .step_s = sqlite3_column_double(st, 3),
                      .step_low_s = sqlite3_column_double(st, 4),
                      .step_high_s = sqlite3_column_double(st, 5),
                      .images_per_s = sqlite3_column_double(st, 6),
                      .memory_bytes = sqlite3_column_int64(st, 7),
                      .bubble = sqlite3_column_double(st, 8),
                      .exposed_comm = sqlite3_column_double(st, 9),
                      .comm_bytes = sqlite3_column_int64(st, 10),
                      .measured_share = sqlite3_column_double(st, 11),
                      .step_quiet_s = sqlite3_column_double(st, 12),
                      .measured_s = sqlite3_column_double(st, 13),
                      .measured_low_s = sqlite3_column_double(st, 14),
                      .measured_high_s = sqlite3_column_double(st, 15),
                      .rounds = sqlite3_column_int(st, 16),
                      .tie = sqlite3_column_int(st, 17)};
    copy_text(c.strategy, sizeof c.strategy, st, 0);
    copy_text(c.note, sizeof c.note, st, 18);
    return c;
}

hp_status hp_candidates_read(hp_arena *arena, hp_db *db, hp_candidate **c, int *n, hp_rejected **r,
                             int *n_rejected, hp_error *err) {
    static const char candidates[] =
        "SELECT strategy, gpus, batch, step_s, step_low_s, step_high_s, images_per_s, memory_bytes, bubble,"
        " exposed_comm, comm_bytes, measured_share, step_quiet_s, measured_s, measured_low_s, "
        "measured_high_s, rounds, tie, note FROM candidate ORDER BY rank";
    sqlite3_stmt *st = NULL;
    bool row = false;
    int room = 0;
    hp_status s = HP_OK;
    *n = *n_rejected = 0;
    *c = NULL;
    *r = NULL;
    HP_TRY(hp_db_prepare(db, candidates, &st, err));
    while ((s = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        HP_ROOM(arena, *c, *n, room);
        (*c)[(*n)++] = read_candidate(st);
    }
    sqlite3_finalize(st);
    HP_TRY(s);
    room = 0;
    HP_TRY(hp_db_prepare(db, "SELECT code, count, example, lim, fix FROM rejected", &st, err));
    while ((s = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        HP_ROOM(arena, *r, *n_rejected, room);
        hp_rejected *one = &(*r)[(*n_rejected)++];
        one->code = hp_reject_find(hp_db_text(st, 0));
        one->count = sqlite3_column_int64(st, 1);
        copy_text(one->example, sizeof one->example, st, 2);
        copy_text(one->limit, sizeof one->limit, st, 3);
        copy_text(one->fix, sizeof one->fix, st, 4);
        if (one->code == HP_REJECTS) break;
    }
    if (s == HP_OK && row)
        s = hp_fail(err, HP_EDATA, "%s: damaged: '%.40s' is no reason to reject a candidate", db->path,
                    hp_db_text(st, 0));
    sqlite3_finalize(st);
    return s;
}
