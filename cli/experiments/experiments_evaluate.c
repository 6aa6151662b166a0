/* experiments_evaluate.c - what simulate predicts for the options of a row, in this process. */
#include "cli/commands/simulate_search.h"
#include "cli/experiments/experiments.h"

#include "plan/strategy/family.h"

#include <math.h>
#include <string.h>

static void take_memory(const hp_evaluation *v, int ranks, experiment_run *run) {
    if (!v->n_role) return;
    int64_t most = 0, sum = 0;
    for (int i = 0; i < v->n_role; i++) most = v->memory_by_role[i] > most ? v->memory_by_role[i] : most;
    for (int i = 0; i < ranks; i++) sum += v->memory_by_role[i % v->n_role];
    run->figure[EXPERIMENT_memory_gb] = (double)most / 1e9;
    run->figure[EXPERIMENT_memory_first_gb] = (double)v->memory_by_role[0] / 1e9;
    run->figure[EXPERIMENT_memory_last_gb] = (double)v->memory_by_role[(ranks - 1) % v->n_role] / 1e9;
    run->figure[EXPERIMENT_memory_sum_gb] = (double)sum / 1e9;
}

static void take(const hp_evaluation *v, experiment_run *run) {
    const hp_reject *r = &v->reject;
    take_memory(v, hp_strategy_ranks(&v->strategy), run);
    run->outcome = !r->code ? "fits" : r->code == HP_REJECT_MEM ? "oom" : "rejected";
    if (r->code) {
        snprintf(run->why, sizeof run->why, "%s: %s", hp_reject_text(r->code), r->limit);
        return;
    }
    run->family = hp_family_name(hp_family_of(&v->strategy));
    run->figure[EXPERIMENT_images_per_s] = v->figures.images_per_s;
    run->figure[EXPERIMENT_step_s] = v->figures.step_s;
    run->step_low = v->figures.step_low_s / v->figures.step_s;
    run->step_high = v->figures.step_high_s / v->figures.step_s;
}

/* Without a strategy: searches for the best one. */
static hp_status search(hp_arena *arena, simulate_setup *s, experiment_run *run, hp_error *err) {
    simulate_found f = {0};
    HP_TRY(simulate_search(arena, s, &f, err));
    if (f.n)
        take(&f.list[f.chosen], run);
    else
        run->outcome = "oom";
    return HP_OK;
}

static hp_status one_strategy(hp_arena *arena, const simulate_setup *s, bool exchange, experiment_run *run,
                              hp_error *err) {
    const int devices = hp_strategy_devices(&s->curves.strategy);
    hp_eval *e = simulate_eval(
        arena, s, s->step.batch ? s->step.batch : hp_strategy_batch(&s->curves.strategy, devices));
    hp_question q = hp_eval_question(e, &s->curves.strategy, s->curves.n_count ? s->curves.count[0] : 0);
    hp_evaluation v;
    q.batch = s->step.batch;
    HP_TRY(hp_question_evaluate(e, &q, HP_EVAL_PLACED, arena, &v, err));
    take(&v, run);
    if (!exchange || v.reject.code) return HP_OK;
    return experiment_exchange(arena, e, &v, &run->figure[EXPERIMENT_exchange_s], err);
}

static hp_status prepare(hp_arena *arena, const experiment_row *row, const experiment_costs *c,
                         simulate_setup *s, hp_error *err) {
    simulate_options o = row->options;
    if (c->roofline) o.costs.as = NULL; /* the roofline is no framework's */
    HP_TRY(simulate_prepare(arena, &o, s, err));
    return experiment_use_costs(arena, c, s, err);
}

static hp_status evaluate(hp_arena *arena, const experiment_row *row, const experiment_costs *c,
                          experiment_run *run, hp_error *err) {
    simulate_setup s;
    HP_TRY(prepare(arena, row, c, &s, err));
    run->figure[EXPERIMENT_parameters] = (double)hp_graph_param_count(s.network.trained);
    const bool exchange = row->has_figure && row->measure == EXPERIMENT_exchange_s;
    return s.curves.has_strategy ? one_strategy(arena, &s, exchange, run, err) : search(arena, &s, run, err);
}

static void evaluate_row(const experiment_row *row, const experiment_costs *c, experiment_run *run) {
    hp_error err = {0};
    hp_arena *arena = hp_arena_new();
    for (int m = 0; m < EXPERIMENT_FIRST_WORD; m++) run->figure[m] = NAN;
    if (evaluate(arena, row, c, run, &err) != HP_OK)
        snprintf(run->why, sizeof run->why, "%.*s", (int)sizeof run->why - 1, err.text);
    hp_arena_free(arena);
}

const experiment_row *experiment_origin(const experiment_file *f, const experiment_row *row) {
    return row->first >= 0 ? &f->row[row->first] : row;
}

bool experiment_wants(const experiment_filter *w, const experiment_file *f, const experiment_row *row) {
    if (!w) return true;
    if (w->file) return w->file == f;
    const char *has =
        *(const char *const *)(const void *)((const char *)&experiment_origin(f, row)->options + w->at);
    return has && strcmp(has, w->value) == 0;
}

experiment_run **experiment_evaluate_all(hp_arena *arena, const experiment_book *b, const experiment_costs *c,
                                         const experiment_filter *w) {
    experiment_run **run = HP_NEW(arena, experiment_run *, b->n);
    for (int k = 0; k < b->n; k++) {
        const experiment_file *f = &b->file[k];
        run[k] = HP_NEW(arena, experiment_run, f->n);
        for (int i = 0; i < f->n; i++)
            if (f->row[i].runs && experiment_wants(w, f, &f->row[i])) evaluate_row(&f->row[i], c, &run[k][i]);
    }
    return run;
}
