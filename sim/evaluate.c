/* evaluate.c - from strategy to figures, with what candidates have in common computed once. */
#include "sim/evaluate.h"

#include "sim/bounds.h"
#include "sim/memory_fit.h"
#include "sim/wiring.h"

#include <math.h>
#include <string.h>

enum {
    UNFOLD_TASKS = 200000, /* tasks of all ranks (about 0.1 s); above, replicas that differ in their routes
                              are taken as alike */
    TRACE_SPANS = 400000   /* spans of a stored trace (about 20 MB); above, one replica stands for all */
};

struct hp_eval {
    hp_arena *arena;
    hp_eval_setup setup;
    hp_cost_cache *cache;
    hp_unit_costs *units; /* per micro-batch size seen */
    int n_units, units_capacity;
};

hp_eval *hp_eval_new(hp_arena *arena, const hp_eval_setup *setup) {
    hp_eval *e = HP_NEW(arena, hp_eval, 1);
    e->arena = arena;
    e->setup = *setup;
    e->cache = hp_cost_cache_new(arena, setup->table, setup->machine);
    return e;
}

const hp_eval_setup *hp_eval_get(const hp_eval *e) {
    return &e->setup;
}

/* Sums the costs of a one-rank program over the units its layers belong to. */
static void sum_units(const hp_eval *e, const hp_program *p, const hp_sim_costs *costs, hp_unit_costs *u) {
    const hp_graph *g = e->setup.graph;
    const hp_role *r = &p->role[0];
    for (int t = 0; t < r->n_task; t++) {
        const hp_task *k = &r->task[t];
        if (k->layer < 0) continue;
        const int unit = g->layer[k->layer].unit;
        const double high = costs->seconds(costs->self, p, g, 0, t, 1);
        u->total[unit] += costs->seconds(costs->self, p, g, 0, t, 0);
        if (k->op == HP_TASK_FWD) u->forward_high[unit] += high;
        if (k->op == HP_TASK_BWD || k->op == HP_TASK_BWDW) u->backward_high[unit] += high;
    }
}

hp_status hp_eval_units(hp_eval *e, int64_t micro_batch, const hp_unit_costs **units, hp_error *err) {
    for (int i = 0; i < e->n_units; i++) {
        if (e->units[i].micro_batch == micro_batch) {
            *units = &e->units[i];
            return HP_OK;
        }
    }
    const int n = e->setup.graph->n_unit;
    hp_unit_costs u = {micro_batch, HP_NEW(e->arena, double, n), HP_NEW(e->arena, double, n),
                       HP_NEW(e->arena, double, n)};
    hp_arena *scratch = hp_arena_new();
    const hp_strategy whole = hp_strategy_default();
    const hp_lower_options o = {.mode = e->setup.mode, .dtype = e->setup.dtype, .batch = micro_batch};
    hp_program *p;
    const hp_status status = hp_lower(scratch, e->setup.graph, &whole, &o, &p, err);
    if (status == HP_OK) {
        const hp_sim_costs costs = hp_costs_of_program(scratch, e->cache, p, e->setup.graph);
        sum_units(e, p, &costs, &u);
        HP_ROOM(e->arena, e->units, e->n_units, e->units_capacity);
        e->units[e->n_units] = u;
        *units = &e->units[e->n_units++];
    }
    hp_arena_free(scratch);
    return status;
}

static int64_t micro_batch_of(const hp_eval *e, const hp_strategy *s) {
    return e->setup.batch / ((int64_t)s->dp * s->micro);
}

hp_status hp_eval_unit_cost(hp_eval *e, const hp_strategy *s, const double **unit_cost, hp_error *err) {
    const hp_unit_costs *u;
    HP_TRY(hp_eval_units(e, micro_batch_of(e, s), &u, err));
    *unit_cost = u->total;
    return HP_OK;
}

static void cut_of(const hp_eval *e, const hp_strategy *s, const hp_unit_costs *u, int32_t *counts) {
    if (s->n_cut)
        memcpy(counts, s->cut, sizeof(int32_t) * (size_t)s->n_cut);
    else
        hp_cut_balanced(u->total, e->setup.graph->n_unit, s->stages * s->chunks, counts);
}

hp_status hp_eval_bound(hp_eval *e, const hp_strategy *s, double *seconds, hp_error *err) {
    const hp_unit_costs *u;
    HP_TRY(hp_eval_units(e, micro_batch_of(e, s), &u, err));
    int32_t counts[HP_MAX_STAGES];
    hp_stage_cost stage[HP_MAX_STAGES] = {{0}};
    cut_of(e, s, u, counts);
    int unit = 0;
    for (int v = 0; v < s->stages * s->chunks; v++) {
        for (int i = 0; i < counts[v]; i++, unit++) {
            stage[v].forward += u->forward_high[unit];
            stage[v].backward += u->backward_high[unit];
        }
    }
    *seconds = hp_pipeline_bound(stage, s->stages, s->chunks, s->micro);
    return HP_OK;
}

static hp_status lower(hp_eval *e, hp_arena *arena, const hp_strategy *s, bool placed, hp_program **p,
                       hp_error *err) {
    hp_lower_options o = {
        .mode = e->setup.mode, .dtype = e->setup.dtype, .batch = e->setup.batch, .place = placed};
    if (!s->n_cut) HP_TRY(hp_eval_unit_cost(e, s, &o.unit_cost, err));
    return hp_lower(arena, e->setup.graph, s, &o, p, err);
}

static void check_memory(hp_eval *e, hp_arena *arena, const hp_program *p, hp_evaluation *out) {
    const hp_memory_limit limit = hp_memory_limit_of(e->setup.machine, e->setup.memory_limit);
    out->memory_by_role = HP_NEW(arena, int64_t, p->n_role);
    for (int r = 0; r < p->n_role; r++) {
        out->memory_by_role[r] = p->role[r].arena_bytes;
        if (p->role[r].arena_bytes > out->figures.memory_bytes)
            out->figures.memory_bytes = p->role[r].arena_bytes;
    }
    hp_memory_fits(&limit, e->setup.machine, out->memory_by_role, p->n_role, p->dp, &out->reject);
}

static hp_status feasible(hp_eval *e, hp_arena *arena, const hp_strategy *s, bool placed, hp_evaluation *out,
                          hp_program **p, hp_error *err) {
    *out = (hp_evaluation){.strategy = *s};
    hp_strategy_text(s, out->figures.strategy);
    out->figures.gpus = hp_strategy_ranks(s);
    if (!hp_strategy_legal(s, e->setup.graph, e->setup.batch, 0, &out->reject)) return HP_OK;
    out->reject.code = NULL;
    HP_TRY(lower(e, arena, s, placed, p, err));
    check_memory(e, arena, *p, out);
    return HP_OK;
}

/* What outlives the program: the result's own arena takes it. */
static void keep(hp_arena *arena, hp_evaluation *out) {
    const size_t bytes = sizeof *out->memory_by_role * (size_t)out->strategy.stages;
    out->memory_by_role = memcpy(hp_arena_alloc(arena, bytes), out->memory_by_role, bytes);
}

hp_status hp_eval_feasible(hp_eval *e, hp_arena *arena, const hp_strategy *s, bool placed, hp_evaluation *out,
                           hp_error *err) {
    hp_arena *scratch = hp_arena_new();
    hp_program *p = NULL;
    const hp_status status = feasible(e, scratch, s, placed, out, &p, err);
    if (status == HP_OK && p) keep(arena, out);
    hp_arena_free(scratch);
    return status;
}

static int64_t all_tasks(const hp_program *p) {
    int64_t n = 0;
    for (int r = 0; r < p->n_role; r++) n += (int64_t)p->role[r].n_task * p->dp;
    return n;
}

static hp_sim_options sim_options(const hp_eval *e, const hp_program *p) {
    const bool alike = e->setup.jitter_cv <= 0 && e->setup.straggler_rank < 0 && !e->setup.no_fold;
    const bool fold = alike && (hp_can_fold(p, e->setup.machine) || all_tasks(p) > UNFOLD_TASKS);
    return (hp_sim_options){.fold = fold,
                            .jitter_cv = e->setup.jitter_cv,
                            .straggler_rank = e->setup.straggler_rank,
                            .straggler_factor = e->setup.straggler_factor,
                            .seed = e->setup.seed};
}

/* What limits the step, in words. */
static void note(const hp_eval *e, const hp_program *p, const hp_sim_costs *costs, hp_candidate *c) {
    int busiest = 0;
    double most = 0;
    for (int r = 0; r < p->n_role; r++) {
        double work = 0;
        for (int t = 0; t < p->role[r].n_task; t++) {
            if (p->role[r].task[t].queue == 0)
                work += costs->seconds(costs->self, p, e->setup.graph, r, t, 0);
        }
        if (work > most) {
            most = work;
            busiest = r;
        }
    }
    const double compute = 1 - c->bubble - c->exposed_comm;
    if (c->exposed_comm > c->bubble && c->exposed_comm > compute / 2)
        snprintf(c->note, sizeof c->note, "waits for communication");
    else if (c->bubble > compute / 2)
        snprintf(c->note, sizeof c->note, "waits in the pipeline");
    else if (p->n_role > 1)
        snprintf(c->note, sizeof c->note, "computing, most on stage %d", busiest);
    else
        snprintf(c->note, sizeof c->note, "computing");
}

static hp_status simulate(hp_eval *e, hp_arena *arena, const hp_program *p, hp_candidate *c, hp_error *err) {
    const hp_sim_costs costs = hp_costs_of_program(arena, e->cache, p, e->setup.graph);
    hp_sim_options o = sim_options(e, p);
    double step[3];
    hp_sim_result result;
    for (int i = 2; i >= 0; i--) { /* ends with the middle: its fractions are kept */
        static const int bounds[3] = {0, -1, 1};
        o.bound = bounds[i];
        HP_TRY(hp_sim_run(arena, p, e->setup.graph, e->setup.machine, &costs, &o, &result, err));
        step[i] = (double)result.makespan_ns * 1e-9;
    }
    c->step_s = step[0];
    c->step_low_s = fmin(step[0], step[1]); /* less can take longer where tasks contend (Graham 1969) */
    c->step_high_s = fmax(step[0], step[2]);
    c->images_per_s = step[0] > 0 ? (double)e->setup.batch / step[0] : 0;
    c->bubble = result.bubble;
    c->exposed_comm = result.exposed_comm;
    c->comm_bytes = result.comm_bytes;
    c->measured_share = hp_costs_measured_share(&costs, p);
    note(e, p, &costs, c);
    return HP_OK;
}

hp_status hp_evaluate(hp_eval *e, hp_arena *arena, const hp_strategy *s, bool placed, hp_evaluation *out,
                      hp_error *err) {
    hp_arena *scratch = hp_arena_new();
    hp_program *p = NULL;
    hp_status status = feasible(e, scratch, s, placed, out, &p, err);
    if (status == HP_OK && p && !out->reject.code) status = simulate(e, scratch, p, &out->figures, err);
    if (status == HP_OK && p) keep(arena, out);
    hp_arena_free(scratch);
    return status;
}

hp_status hp_eval_trace(hp_eval *e, hp_arena *arena, const hp_program *p, hp_sim_result *result,
                        hp_error *err) {
    const hp_sim_costs costs = hp_costs_of_program(arena, e->cache, p, e->setup.graph);
    hp_sim_options o = sim_options(e, p);
    o.want_spans = true;
    if (all_tasks(p) <= TRACE_SPANS) o.fold = false;
    return hp_sim_run(arena, p, e->setup.graph, e->setup.machine, &costs, &o, result, err);
}
