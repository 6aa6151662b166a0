/* conditions.c - under which conditions a search ran (rules, memory, a straggler), kept in plan.db so that
 * `why` can answer under the same. */
#include "cli/commands/conditions.h"

#include <string.h>

/* One row per condition: how it is written, and read again. */
static const char format[] = "rules %d eager %d limit %lld jitter %lg straggler %d %lg";

hp_status conditions_write(hp_db *db, const hp_eval_setup *e, hp_error *err) {
    char text[200];
    snprintf(text, sizeof text, "rules %d eager %d limit %lld jitter %.17g straggler %d %.17g", (int)e->rules,
             (int)e->eager, (long long)e->memory_limit, e->jitter_cv, e->straggler_rank, e->straggler_factor);
    return hp_db_exec(db, err, "INSERT INTO meta(key, value) VALUES('conditions', ?)", "s", text);
}

hp_status conditions_read(hp_db *db, hp_eval_setup *e, hp_error *err) {
    sqlite3_stmt *st = NULL;
    bool row = false;
    HP_TRY(hp_db_prepare(db, "SELECT value FROM meta WHERE key = 'conditions'", &st, err));
    hp_status s = hp_db_next(db, st, &row, err);
    if (s == HP_OK && row) {
        int rules = 0, eager = 0, rank = -1;
        long long limit = 0;
        double jitter = 0, factor = 1;
        const int n = sscanf(hp_db_text(st, 0), format, &rules, &eager, &limit, &jitter, &rank, &factor);
        const bool fine = n == 6 && rules >= 0 && rules <= (int)HP_RULES_MPI4DL && limit >= 0 && rank >= -1 &&
                          jitter >= 0 && jitter < 100 && factor >= 0 && factor < 1e6;
        if (!fine) {
            s = hp_fail(err, HP_EDATA, "%s: damaged: the conditions of its search cannot be read", db->path);
        } else {
            e->rules = (hp_rules)rules;
            e->eager = eager != 0;
            e->memory_limit = limit;
            e->jitter_cv = jitter;
            e->straggler_rank = rank;
            e->straggler_factor = factor;
        }
    }
    sqlite3_finalize(st);
    return s;
}
