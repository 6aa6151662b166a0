/* conditions.c - stores the cost table in its own table of plan.db, and the rest in one line of `meta`. */
#include "sim/search/conditions.h"

#include "costmodels/framework/framework.h"
#include "costmodels/cost_stored.h"

#include <string.h>

/* The line's format for reading; writing uses the same order. */
static const char format[] = "rules %d eager %d limit %lld jitter %lg straggler %d %lg unfolded %d as %31s";

void hp_conditions_of_plan(const hp_plan *plan, hp_eval_setup *e) {
    e->graph = plan->graph;
    e->plan = plan;
    e->machine = &plan->machine;
    e->mode = (hp_mode)plan->mode;
    e->dtype = (hp_dtype)plan->dtype;
    e->device = plan->device;
    e->batch = plan->batch;
    e->seed = plan->seed;
}

hp_status hp_conditions_write(hp_db *db, const hp_eval_setup *e, hp_error *err) {
    char text[240];
    snprintf(text, sizeof text,
             "rules %d eager %d limit %lld jitter %.17g straggler %d %.17g unfolded %d as %s", (int)e->rules,
             (int)e->eager, (long long)e->memory_limit, e->jitter_cv, e->straggler_rank, e->straggler_factor,
             (int)e->no_fold, e->framework ? e->framework->name : "hplan");
    HP_TRY(hp_db_exec(db, err, "INSERT INTO meta(key, value) VALUES('conditions', ?)", "s", text));
    return hp_cost_store(db, e->table, err);
}

static bool parse(const char *text, hp_eval_setup *e) {
    char framework[32] = "hplan"; /* value that older plans imply */
    hp_error unknown;
    int rules = 0, eager = 0, unfolded = 0;
    long long limit = 0;
    const int n = sscanf(text, format, &rules, &eager, &limit, &e->jitter_cv, &e->straggler_rank,
                         &e->straggler_factor, &unfolded, framework);
    e->rules = (hp_rules)rules;
    e->eager = eager != 0;
    e->memory_limit = limit;
    e->no_fold = unfolded != 0;
    return n >= 7 && hp_framework_find(framework, &e->framework, &unknown) == HP_OK && rules >= 0 &&
           rules <= (int)HP_RULES_MPI4DL && limit >= 0 && e->straggler_rank >= -1 && e->jitter_cv >= -1 &&
           e->jitter_cv < 100 && e->straggler_factor >= 0 && e->straggler_factor < 1e6;
}

hp_status hp_conditions_read(hp_arena *arena, hp_db *db, const hp_plan *plan, hp_eval_setup *e,
                             hp_error *err) {
    sqlite3_stmt *st = NULL;
    hp_cost_table *table = NULL;
    bool row = false;
    *e = (hp_eval_setup){.straggler_rank = -1};
    HP_TRY(hp_db_prepare(db, "SELECT value FROM meta WHERE key = 'conditions'", &st, err));
    hp_status s = hp_db_next(db, st, &row, err);
    if (s == HP_OK && (!row || !parse(hp_db_text(st, 0), e)))
        s = hp_fail(err, HP_EDATA, "%s: damaged: the conditions of its search cannot be read", db->path);
    sqlite3_finalize(st);
    HP_TRY(s);
    HP_TRY(hp_cost_restore(arena, db, &table, err));
    e->table = table;
    hp_conditions_of_plan(plan, e);
    return HP_OK;
}

hp_status hp_conditions_strategy(const char *text, const hp_plan *plan, hp_strategy *s, hp_error *err) {
    const int32_t prec = plan->strategy.prec; /* s may be the plan's own */
    HP_TRY(hp_strategy_parse(text, s, err));
    if (strncmp(text, "prec=", 5) != 0 && !strstr(text, ",prec=")) s->prec = prec;
    return HP_OK;
}
