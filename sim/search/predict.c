/* predict.c - builds, evaluates, simulates again with spans, and stores. Lowers a program only once, because
 * large ones take seconds. */
#include "sim/search/predict.h"

#include "sim/search/conditions.h"
#include "sim/search/fix.h"
#include "sim/results/timeline.h"
#include "traces/trace.h"

#include <string.h>

static hp_status refuse(hp_eval *e, const hp_strategy *asked, hp_evaluation *v, hp_error *err) {
    hp_question q = hp_eval_question(e, asked, 0);
    q.keys_only = true;
    HP_TRY(hp_search_fix(e, &q, HP_FIX_THOROUGH, &v->reject, err));
    return hp_fail(err, HP_EPLAN, "%s: %s: %s; fix: %s", v->figures.strategy, hp_reject_text(v->reject.code),
                   v->reject.limit, v->reject.fix);
}

hp_status hp_predict(hp_arena *arena, hp_plan *plan, const hp_eval_setup *setup, hp_prediction *out,
                     hp_error *err) {
    HP_TRY(hp_plan_graph(arena, plan, &plan->graph, err));
    out->setup = *setup;
    hp_conditions_of_plan(plan, &out->setup);
    hp_eval *e = hp_eval_new(arena, &out->setup);
    hp_evaluation *v = &out->evaluation;
    const double *unit_cost;
    *v = (hp_evaluation){.strategy = plan->strategy};
    hp_strategy_text(&plan->strategy, v->figures.strategy);
    if (!hp_eval_allows(hp_eval_get(e), &plan->strategy, 0, &v->reject))
        return refuse(e, &plan->strategy, v, err);
    hp_eval_complete(e, &plan->strategy, HP_CUT_TIME);
    HP_TRY(hp_eval_unit_cost(e, &plan->strategy, &unit_cost, err));
    plan->comm = hp_eval_comm(e);
    HP_TRY(hp_plan_build(arena, plan, unit_cost, err));
    HP_TRY(hp_eval_program(e, arena, plan->program, &plan->strategy, v, err));
    if (v->reject.code) return refuse(e, &plan->strategy, v, err);
    hp_plan_set_step(plan, v->figures.step_s);
    return hp_eval_trace(e, arena, plan->program, v->draw, &out->trace, err);
}

hp_status hp_predict_program(hp_arena *arena, hp_plan *plan, hp_program *program, const hp_eval_setup *setup,
                             hp_prediction *out, hp_error *err) {
    out->setup = *setup;
    hp_conditions_of_plan(plan, &out->setup);
    hp_eval *e = hp_eval_new(arena, &out->setup);
    const hp_reject *reject = &out->evaluation.reject;
    HP_TRY(hp_eval_program(e, arena, program, &plan->strategy, &out->evaluation, err));
    if (reject->code)
        return hp_fail(err, HP_EPLAN, "%s: %s: %s", out->evaluation.figures.strategy,
                       hp_reject_text(reject->code), reject->limit);
    plan->step_s = out->evaluation.figures.step_s;
    hp_plan_use(plan, program);
    return hp_eval_trace(e, arena, plan->program, out->evaluation.draw, &out->trace, err);
}

static hp_status write_rank(hp_db *db, int64_t run, const hp_plan *plan, const hp_sim_result *t, int rank,
                            hp_error *err) {
    const int role = rank % plan->program->n_role;
    HP_TRY(hp_trace_spans(db, run, rank, role, t->span[rank], t->n_span[rank], err));
    hp_arena *scratch = hp_arena_new();
    hp_sample *sample;
    const int64_t n =
        hp_sim_memory_timeline(scratch, &plan->program->role[role], t->span[rank], t->n_span[rank], &sample);
    hp_status status = hp_trace_samples(db, run, rank, sample, n, err);
    const hp_sample planned = {.name = HP_COUNTER_PLANNED,
                               .value = (double)plan->program->role[role].arena_bytes};
    if (status == HP_OK) status = hp_trace_samples(db, run, rank, &planned, 1, err);
    hp_arena_free(scratch);
    return status;
}

/* Writes the predicted step. The trace is the draw of its jitter that takes nearly as long. */
static hp_status write_step(hp_db *db, int64_t run, const hp_plan *plan, hp_error *err) {
    const hp_sample step = {.name = HP_COUNTER_STEP, .value = plan->step_s};
    return hp_trace_samples(db, run, 0, &step, 1, err);
}

hp_status hp_predict_write(hp_db *db, const hp_plan *plan, const hp_prediction *p, hp_error *err) {
    char text[HP_STRATEGY_TEXT];
    const hp_run_info info = {.kind = "sim",
                              .plan_hash = plan->hash.hex,
                              .strategy = hp_strategy_text(&plan->strategy, text),
                              .machine = plan->machine.name,
                              .device = plan->device->name,
                              .seed = plan->seed,
                              .ranks = hp_program_ranks(plan->program)};
    int64_t run;
    HP_TRY(hp_plan_write(db, plan, err));
    HP_TRY(hp_conditions_write(db, &p->setup, err));
    HP_TRY(hp_trace_begin(db, &info, plan->program, plan->graph, &run, err));
    for (int rank = 0; rank < p->trace.n_rank; rank++)
        HP_TRY(write_rank(db, run, plan, &p->trace, rank, err));
    HP_TRY(write_step(db, run, plan, err));
    return hp_trace_end(db, run, 0, err);
}

hp_status hp_predict_store(const char *path, const hp_plan *plan, const hp_prediction *p, const hp_ranking *r,
                           hp_error *err) {
    hp_db db = {0};
    hp_status s = hp_db_create(path, &db, err);
    if (s == HP_OK) s = hp_predict_write(&db, plan, p, err);
    if (s == HP_OK && r) s = hp_candidates_write(&db, r->candidate, r->n, r->rejected, r->n_rejected, err);
    if (s == HP_OK && r && r->curves && *r->curves)
        s = hp_db_exec(&db, err, "INSERT INTO meta VALUES('curves', ?)", "s", r->curves);
    if (s == HP_OK) s = hp_db_commit(&db, err);
    hp_db_close(&db);
    return s;
}
