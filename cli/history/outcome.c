/* outcome.c - reads run.db after the run: the steps that `compare` counts, with the same functions. */
#include "cli/history/outcome.h"

#include "costmodels/cost_stored.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

/* A candidate without a written-out cut is the plan with its own cut. */
static bool is_the_plan(const hp_candidate *c, const hp_plan *plan) {
    hp_strategy s, chosen = plan->strategy;
    if (c->batch != plan->batch || c->gpus != hp_strategy_devices(&chosen)) return false;
    if (hp_strategy_parse(c->strategy, &s, NULL) != HP_OK) return false;
    if (!s.cut.n) {
        chosen.cut.n = 0;
        memset(chosen.cut.units, 0, sizeof chosen.cut.units);
    }
    return hp_strategy_equal(&s, &chosen);
}

static double known(double v) {
    return v > 0 ? v : NAN;
}

static hp_status read_candidate(hp_arena *arena, hp_db *db, const hp_plan *plan, run_outcome *out,
                                hp_error *err) {
    hp_candidate *c = NULL;
    hp_rejected *r = NULL;
    int n = 0, n_rejected = 0;
    out->low_s = out->high_s = out->quiet_s = NAN;
    HP_TRY(hp_candidates_read(arena, db, &c, &n, &r, &n_rejected, err));
    for (int i = 0; i < n; i++) {
        if (!is_the_plan(&c[i], plan)) continue;
        out->low_s = known(c[i].step_low_s);
        out->high_s = known(c[i].step_high_s);
        out->quiet_s = known(c[i].step_quiet_s);
        break;
    }
    return HP_OK;
}

static hp_status read_table(hp_arena *arena, hp_db *db, hp_cost_table **table, run_outcome *out,
                            hp_error *err) {
    sqlite3_stmt *st = NULL;
    bool row = false;
    HP_TRY(hp_cost_restore(arena, db, table, err));
    HP_TRY(hp_db_prepare(db, "SELECT hash FROM cost WHERE part = 0", &st, err));
    const hp_status s = hp_db_next(db, st, &row, err);
    out->cost_hash = hp_arena_strdup(arena, row ? hp_db_text(st, 0) : "");
    sqlite3_finalize(st);
    out->cost = hp_cost_origin(*table);
    out->cost_processor = hp_cost_processor(*table);
    return s;
}

static hp_status read_run(hp_arena *arena, const hp_plan *plan, hp_db *db, run_outcome *out, hp_error *err) {
    int64_t sim = -1, exec = -1;
    hp_trace a, b;
    hp_comparison c;
    hp_cost_table *table = NULL;
    HP_TRY(hp_trace_find_pair(db, &sim, &exec, err));
    if (sim < 0 || exec < 0) return HP_OK;
    HP_TRY(read_table(arena, db, &table, out, err));
    HP_TRY(read_candidate(arena, db, plan, out, err));
    HP_TRY(hp_trace_load(arena, db, sim, false, &a, err));
    HP_TRY(hp_trace_load(arena, db, exec, false, &b, err));
    if (a.n_iter == 0 || b.n_iter == 0) return HP_OK;
    HP_TRY(hp_compare(arena, &a, &b, &c, err));
    HP_TRY(run_speed_read(arena, plan, table, &a, db, &b, &c, &out->speed, err));
    out->steps = b.n_iter;
    out->warm = b.iter[0].iter > 0;
    out->measured_s = c.step.measured_s;
    out->known = out->measured_s > 0;
    return HP_OK;
}

hp_status run_outcome_read(hp_arena *arena, const hp_plan *plan, const char *path, run_outcome *out,
                           hp_error *err) {
    hp_db db;
    *out = (run_outcome){.predicted_s = plan->step_s, .speed = run_speed_unknown()};
    HP_TRY(hp_db_open(path, &db, err));
    const hp_status s = read_run(arena, plan, &db, out, err);
    hp_db_close(&db);
    return s;
}

/* --- words --- */

static void print_interval(FILE *f, const run_outcome *r) {
    char low[32], high[32];
    if (r->low_s < r->high_s)
        fprintf(f, " (%s to %s)", hp_format_seconds(r->low_s, low), hp_format_seconds(r->high_s, high));
}

const char *run_outcome_text(const run_outcome *r, char out[RUN_OUTCOME_TEXT]) {
    const hp_speed_split *p = &r->speed.split;
    char a[32], b[32], ratio[32];
    out[0] = '\0';
    FILE *f = fmemopen(out, RUN_OUTCOME_TEXT, "w");
    if (!f) return out;
    fprintf(f, "step %s measured (median), %s predicted", hp_format_seconds(r->measured_s, a),
            hp_format_seconds(r->predicted_s, b));
    print_interval(f, r);
    if (p->known)
        fprintf(f, "; the machine was %s %s predicted for: %.1f%% off at equal speed",
                run_speed_ratio(p->usual, ratio), run_speed_than(p->usual), 100 * fabs(p->model_error));
    fclose(f);
    return out;
}

void run_outcome_json(const run_outcome *r, json_t *o) {
    if (r->known) json_object_set_new(o, "step_s", json_real(r->measured_s));
    json_object_set_new(o, "predicted_s", cli_json_number(r->predicted_s));
    json_object_set_new(o, "predicted_low_s", cli_json_number(r->known ? r->low_s : NAN));
    json_object_set_new(o, "predicted_high_s", cli_json_number(r->known ? r->high_s : NAN));
    json_object_set_new(o, "predicted_quiet_s", cli_json_number(r->known ? r->quiet_s : NAN));
    json_object_set_new(o, "speed", run_speed_json(&r->speed));
}
