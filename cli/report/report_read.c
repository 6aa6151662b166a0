/* report_read.c - reads the files of a report, and prices the plan's tasks as its prediction did. */
#include "cli/report/report_data.h"

#include "costmodels/cost_stored.h"
#include "costmodels/framework/framework.h"
#include "plan/strategy/sequence.h"
#include "sim/search/conditions.h"

#include <string.h>

/* Is it the plan's, with a cut or as the search wrote it? */
static bool is_chosen(const hp_candidate *c, const hp_plan *plan) {
    hp_strategy s, whole = plan->strategy;
    hp_error ignored;
    if (c->batch != plan->batch || hp_strategy_parse(c->strategy, &s, &ignored) != HP_OK) return false;
    if (!s.cut.n) whole.cut = s.cut;
    return hp_strategy_equal(&s, &whole);
}

static hp_status read_candidates(report *r, hp_db *db, hp_error *err) {
    hp_rejected *rejected;
    int n_rejected;
    char text[HP_STRATEGY_TEXT];
    HP_TRY(hp_candidates_read(r->arena, db, &r->candidate, &r->n_candidate, &rejected, &n_rejected, err));
    r->chosen = -1;
    for (int i = 0; i < r->n_candidate && r->chosen < 0; i++)
        if (is_chosen(&r->candidate[i], &r->plan)) r->chosen = i;
    r->strategy = r->chosen >= 0 ? r->candidate[r->chosen].strategy
                                 : hp_arena_strdup(r->arena, hp_strategy_text(&r->plan.strategy, text));
    return HP_OK;
}

static void price_tasks(report *r) {
    const hp_framework *f = r->setup.framework;
    r->table = f ? hp_framework_table(r->arena, f, r->setup.table) : r->setup.table;
    hp_cost_cache *cache = hp_cost_cache_new(r->arena, r->table, &r->plan.machine, f);
    r->graph = hp_strategy_graph(r->arena, r->plan.graph, &r->plan.strategy);
    r->costs = hp_costs_of_program(r->arena, cache, r->plan.program, r->graph).self;
}

static hp_status read_subject(report *r, hp_db *db, hp_error *err) {
    HP_TRY(hp_plan_read(r->arena, db, &r->plan, err));
    HP_TRY(read_candidates(r, db, err));
    HP_TRY(hp_conditions_read(r->arena, db, &r->plan, &r->setup, err));
    r->eval = hp_eval_new(r->arena, &r->setup);
    HP_TRY(hp_eval_program(r->eval, r->arena, r->plan.program, &r->plan.strategy, &r->figures, err));
    if (!(r->figures.figures.step_s > 0))
        r->figures.figures.step_s = r->plan.step_s; /* it does not fit here */
    r->figures.figures.gpus = hp_program_ranks(r->plan.program) / r->plan.program->clients;
    price_tasks(r);
    return HP_OK;
}

/* The subject's own run, or the first of the same plan. */
static void find_traces(report *r) {
    const hp_plot_source *first = &r->source[0];
    if (first->has_sim && first->sim.n_iter) r->sim = &first->sim;
    for (int i = 0; i < r->n && !r->exec; i++) {
        const hp_plot_source *s = &r->source[i];
        if (!s->has_exec || !s->exec.n_iter || (i && strcmp(s->exec.plan_hash, r->plan.hash.hex) != 0))
            continue;
        r->exec = &s->exec;
        r->exec_path = s->path;
    }
}

hp_status report_read(hp_arena *arena, const char *const *path, int n, report *r, hp_error *err) {
    hp_db db;
    *r = (report){.arena = arena, .n = n, .source = HP_NEW(arena, hp_plot_source, n), .path = path[0]};
    for (int i = 0; i < n; i++) HP_TRY(hp_plot_load(arena, path[i], &r->source[i], err));
    HP_TRY(hp_db_open(path[0], &db, err));
    const hp_status status = read_subject(r, &db, err);
    hp_db_close(&db);
    HP_TRY(status);
    find_traces(r);
    return HP_OK;
}
