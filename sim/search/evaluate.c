/* evaluate.c - from strategy to figures, with what candidates have in common computed once. */
#include "sim/search/evaluate.h"

#include "networks/graph/summands.h"
#include "plan/strategy/sequence.h"

#include "costmodels/framework/framework.h"

#include "base/hash.h"
#include "plan/strategy/strategy_axis.h"
#include "base/units.h"
#include "sim/search/search_figures.h"
#include "costmodels/tuning/size_classes.h"
#include "sim/memory/eager.h"
#include "costmodels/cost_speed.h"
#include "plan/lower/lower_placement.h"
#include "plan/lower/lower.h"

#include <math.h>
#include <string.h>

enum {
    TRACE_SPANS = 400000 /* spans of a stored trace (about 20 MB); above, one replica stands for all */
};

/* Times of the network's units for one micro-batch, and the cuts that follow from them. */
typedef struct unit_costs {
    int64_t micro_batch;
    double *total;   /* forward + backward */
    int32_t **plain; /* per number of parts: balanced, NULL = not asked yet */
} unit_costs;

/* What a cut over unequal stages depends on, besides the machine: words of the keys that decide it. */
typedef struct cut_key {
    int64_t micro_batch;
    int32_t kind, n, word[24];
} cut_key;

typedef struct known_cut {
    cut_key key;
    int32_t counts[HP_MAX_STAGES];
} known_cut;
enum { KNOWN_CUTS = 1024 }; /* a cache with one place per key */

struct hp_eval {
    hp_arena *arena;
    hp_eval_setup setup;
    const hp_graph *graph;   /* as the strategy at hand runs it (hp_strategy_graph) */
    const hp_graph **graphs; /* all that were wanted so far */
    int n_graph, graph_room;
    hp_cost_cache *cache, *quiet; /* at the table's speed; on the quiet machine, NULL: not known */
    const hp_comm_table *comm;    /* what comm=auto means */
    hp_estimate_setup estimate;
    hp_cut_costs cuts;
    unit_costs *units; /* per micro-batch size seen */
    int n_units, units_capacity;
    known_cut *cut; /* KNOWN_CUTS of them */
};

static hp_cost_cache *quiet_cache(hp_arena *arena, const hp_eval_setup *setup) {
    const hp_machine *m = setup->machine;
    const hp_speed quiet = hp_speed_quiet();
    if (!hp_yardstick_row(setup->table, m->device.name, HP_YARD_ARITH, m->cores_per_node)) return NULL;
    return hp_cost_cache_new(arena, hp_cost_at(arena, setup->table, &quiet), m, setup->framework);
}

hp_eval *hp_eval_new(hp_arena *arena, const hp_eval_setup *setup) {
    hp_eval *e = HP_NEW(arena, hp_eval, 1);
    e->arena = arena;
    e->setup = *setup;
    if (setup->framework) e->setup.table = hp_framework_table(arena, setup->framework, setup->table);
    const hp_strategy one = hp_strategy_default();
    e->graph = e->setup.graph = hp_strategy_graph(arena, setup->graph, &one);
    setup = &e->setup;
    e->cache = hp_cost_cache_new(arena, setup->table, setup->machine, setup->framework);
    e->quiet = quiet_cache(arena, setup);
    e->cut = HP_NEW(arena, known_cut, KNOWN_CUTS);
    e->comm = hp_size_classes(arena, setup->table, setup->machine, setup->device);
    hp_parts *parts =
        hp_parts_new(arena, setup->graph, e->cache, setup->dtype, setup->mode, setup->device, e->comm);
    e->cuts = (hp_cut_costs){setup->machine, {parts}};
    for (int k = 0; k < hp_machine_classes(setup->machine) && setup->machine->mix.n_class > 0; k++)
        e->cuts.of_class[k] = hp_parts_new(arena, setup->graph, hp_costs_of_class(e->cache, k), setup->dtype,
                                           setup->mode, setup->device, e->comm);
    e->estimate = (hp_estimate_setup){.parts = parts,
                                      .graph = setup->graph,
                                      .costs = e->cache,
                                      .machine = setup->machine,
                                      .mode = setup->mode,
                                      .dtype = setup->dtype,
                                      .device = setup->device,
                                      .comm = e->comm,
                                      .batch = setup->batch,
                                      .params = (double)hp_graph_param_count(setup->graph),
                                      .eager = setup->eager};
    return e;
}

static void use_graph(hp_eval *e, const hp_strategy *s) {
    for (int i = 0; i < e->n_graph; i++) {
        const int ranks = hp_graph_summands(e->graphs[i]);
        e->graph = e->graphs[i];
        if (ranks == 0 || ranks == s->tp) return;
    }
    HP_ROOM(e->arena, e->graphs, e->n_graph, e->graph_room);
    e->graph = e->graphs[e->n_graph++] = hp_strategy_graph(e->arena, e->setup.graph, s);
}

const hp_eval_setup *hp_eval_get(const hp_eval *e) {
    return &e->setup;
}

const hp_comm_table *hp_eval_comm(const hp_eval *e) {
    return e->comm;
}

/* --- cuts --- */

/* Sums the costs of a one-rank program over the units its layers belong to. */
static void sum_units(const hp_eval *e, const hp_program *p, const hp_sim_costs *costs, unit_costs *u) {
    const hp_graph *g = e->setup.graph;
    const hp_role *r = &p->role[0];
    for (int t = 0; t < r->n_task; t++) {
        if (r->task[t].layer >= 0 && r->task[t].layer < g->n_layer)
            u->total[g->layer[r->task[t].layer].unit] += costs->seconds(costs->self, p, g, 0, t);
    }
}

static hp_status units_of(hp_eval *e, int64_t micro_batch, unit_costs **units, hp_error *err) {
    for (int i = 0; i < e->n_units; i++) {
        *units = &e->units[i];
        if (e->units[i].micro_batch == micro_batch) return HP_OK;
    }
    const int n = e->setup.graph->n_unit;
    unit_costs u = {micro_batch, HP_NEW(e->arena, double, n), HP_NEW(e->arena, int32_t *, n + 1)};
    hp_arena *scratch = hp_arena_new();
    hp_strategy whole = hp_strategy_default();
    whole.prec = e->setup.graph->prec;
    const hp_lower_options o = {
        .mode = e->setup.mode, .dtype = e->setup.dtype, .batch = micro_batch, .device = e->setup.device};
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
    return e->setup.batch / ((int64_t)hp_strategy_replicas(s) * hp_strategy_groups(s));
}

hp_status hp_eval_unit_cost(hp_eval *e, const hp_strategy *s, const double **unit_cost, hp_error *err) {
    unit_costs *u;
    HP_TRY(units_of(e, micro_batch_of(e, s), &u, err));
    *unit_cost = u->total;
    return HP_OK;
}

double hp_eval_class_seconds(hp_eval *e, const hp_strategy *s, int class) {
    const hp_layout whole = {.rows = 1, .cols = 1, .slices = 1, .channels = 1, .tp = 1, .seq = 1};
    hp_parts *on = e->cuts.of_class[class] ? e->cuts.of_class[class] : e->cuts.of_class[0];
    const hp_part_sums *p = hp_parts_of(on, &whole, micro_batch_of(e, s));
    return p->forward[e->setup.graph->n_unit] + p->backward[e->setup.graph->n_unit];
}

static hp_status plain_cut(hp_eval *e, const hp_strategy *s, const int32_t **counts, hp_error *err) {
    unit_costs *u;
    HP_TRY(units_of(e, micro_batch_of(e, s), &u, err));
    const int parts = s->stages * s->chunks;
    if (!u->plain[parts]) {
        u->plain[parts] = HP_NEW(e->arena, int32_t, parts);
        hp_cut_balanced(u->total, e->setup.graph->n_unit, parts, u->plain[parts]);
    }
    *counts = u->plain[parts];
    return HP_OK;
}

/* False: there is no such key. */
static bool find_cut_key(const hp_eval *e, const hp_strategy *s, hp_cut_kind kind, cut_key *k) {
    enum { MOST = sizeof k->word / sizeof *k->word };
    *k = (cut_key){.micro_batch = micro_batch_of(e, s), .kind = (int32_t)kind};
    for (int i = 0; i < HP_STRATEGY_AXES; i++) {
        const hp_axis *a = hp_strategy_axes[i];
        const int n = a->cut_key ? a->cut_key(a, s, &k->word[k->n]) : 0;
        if (n < 0 || k->n + n > MOST - HP_AXIS_CUT_WORDS) return false;
        k->n += n;
    }
    return !hp_machine_mixed(e->setup.machine); /* else placement decides, too */
}

void hp_eval_complete(hp_eval *e, hp_strategy *s, hp_cut_kind kind) {
    if (s->cut.n || s->stages * s->chunks == 1) return;
    if (hp_cut_is_plain(s, e->setup.machine) && kind != HP_CUT_MEMORY) return;
    cut_key key;
    const bool keyed = find_cut_key(e, s, kind, &key);
    known_cut other, *known = keyed ? &e->cut[hp_hash64(&key, sizeof key, 0) % KNOWN_CUTS] : &other;
    if (known == &other || memcmp(&known->key, &key, sizeof key) != 0)
        hp_cut_stages(&e->cuts, e->setup.graph, s, micro_batch_of(e, s), kind, e->setup.eager, known->counts);
    known->key = key;
    s->cut.n = s->stages * s->chunks;
    memcpy(s->cut.units, known->counts, sizeof *s->cut.units * (size_t)s->cut.n);
}

double hp_eval_weights(const hp_eval *e, const hp_strategy *s) {
    return hp_estimate_weights(&e->estimate, s);
}

hp_status hp_eval_estimate(hp_eval *e, const hp_strategy *s, hp_estimate *out, hp_error *err) {
    hp_strategy whole;
    const int32_t *counts = s->cut.units;
    if (!s->cut.n && hp_cut_is_plain(s, e->setup.machine)) {
        HP_TRY(plain_cut(e, s, &counts, err));
    } else if (!s->cut.n) {
        whole = *s;
        hp_eval_complete(e, &whole, HP_CUT_TIME);
        counts = whole.cut.units;
    }
    *out = hp_estimate_of(&e->estimate, s, counts);
    return HP_OK;
}

/* --- one strategy --- */

static hp_status lower(hp_eval *e, hp_arena *arena, const hp_strategy *s, bool placed, hp_program **p,
                       hp_error *err) {
    hp_lower_options o = {.mode = e->setup.mode,
                          .dtype = e->setup.dtype,
                          .batch = e->setup.batch,
                          .device = e->setup.device,
                          .machine = e->setup.machine,
                          .comm = e->comm,
                          .place = placed};
    if (!s->cut.n) HP_TRY(hp_eval_unit_cost(e, s, &o.unit_cost, err));
    use_graph(e, s);
    return hp_lower(arena, e->graph, s, &o, p, err);
}

hp_status hp_eval_lower(hp_eval *e, hp_arena *arena, const hp_strategy *s, hp_program **p, hp_error *err) {
    hp_strategy whole = *s;
    hp_eval_complete(e, &whole, HP_CUT_TIME);
    return lower(e, arena, &whole, false, p, err);
}

hp_memory_limit hp_eval_limit(const hp_eval *e, const hp_strategy *s) {
    return hp_memory_limit_of(e->setup.machine, e->setup.memory_limit, s->clients, e->setup.eager);
}

static int64_t role_bytes(const hp_eval *e, const hp_program *p, int role) {
    const hp_framework *f = e->setup.framework;
    const bool engine = f && f->kernels.fuses && !f->attention.stores_scores; /* its memory is planned, too */
    if (!e->setup.eager) return p->role[role].arena_bytes;
    return (engine ? p->role[role].arena_bytes : hp_eager_bytes(p, e->graph, f, role)) +
           hp_framework_context_bytes(e->setup.machine, e->setup.framework);
}

static void check_memory(const hp_eval *e, hp_arena *arena, const hp_program *p, hp_evaluation *out) {
    const hp_memory_limit limit = hp_eval_limit(e, &out->strategy);
    out->n_role = p->n_role;
    out->memory_by_role = HP_NEW(arena, int64_t, p->n_role);
    for (int r = 0; r < p->n_role; r++) {
        out->memory_by_role[r] = role_bytes(e, p, r);
        if (out->memory_by_role[r] > out->figures.memory_bytes)
            out->figures.memory_bytes = out->memory_by_role[r];
    }
    const hp_memory_demand d = {out->memory_by_role, p->n_role, p->dp, p->clients,
                                p->n_seat ? p->seat : NULL};
    hp_memory_fits(&limit, e->setup.machine, &d, &out->reject);
}

static int64_t all_tasks(const hp_program *p) {
    int64_t n = 0;
    for (int r = 0; r < p->n_role; r++) n += p->role[r].n_task;
    return n;
}

/* Why an image goes in strips. */
static hp_status note_strips(hp_eval *e, const hp_strategy *s, char *note, size_t n, hp_error *err) {
    hp_strategy whole = *s;
    hp_estimate out;
    char needs[32];
    whole.strips.n = 1;
    whole.strips.deep = 0;
    HP_TRY(hp_eval_estimate(e, &whole, &out, err));
    const size_t used = strlen(note);
    snprintf(note + used, n - used, "; in strips: whole maps need %s",
             hp_format_bytes(out.memory_bytes, needs));
    return HP_OK;
}

static hp_status simulate(hp_eval *e, hp_arena *arena, const hp_program *p, hp_evaluation *out,
                          hp_error *err) {
    hp_figures_costs costs = {hp_costs_of_program(arena, e->cache, p, e->graph), NULL};
    hp_sim_costs quiet;
    if (e->quiet) {
        quiet = hp_costs_of_program(arena, e->quiet, p, e->graph);
        costs.quiet = &quiet;
    }
    hp_eval_setup as_run = e->setup;
    as_run.graph = e->graph;
    HP_TRY(hp_figures_of(&as_run, &costs, p, out, err));
    if (out->strategy.strips.n == 1) return HP_OK;
    return note_strips(e, &out->strategy, out->figures.note, sizeof out->figures.note, err);
}

/* Simulates only the step time, by which strategies are ranked. */
static hp_status simulate_rank(hp_eval *e, hp_arena *arena, const hp_program *p, hp_evaluation *out,
                               hp_error *err) {
    const hp_sim_costs costs = hp_costs_of_program(arena, e->cache, p, e->graph);
    const hp_sim_options o = hp_figures_options(&e->setup, p);
    hp_sim_result result;
    HP_TRY(hp_sim_run(arena, p, e->graph, e->setup.machine, &costs, &o, &result, err));
    out->figures.step_s = (double)result.makespan_ns * 1e-9;
    return HP_OK;
}

static hp_status evaluate(hp_eval *e, hp_arena *scratch, hp_eval_depth depth, hp_evaluation *out,
                          hp_error *err) {
    hp_program *p = NULL;
    hp_eval_complete(e, &out->strategy, HP_CUT_TIME);
    hp_strategy_text(&out->strategy, out->figures.strategy);
    HP_TRY(lower(e, scratch, &out->strategy, depth >= HP_EVAL_FITS, &p, err));
    out->tasks = all_tasks(p);
    check_memory(e, scratch, p, out);
    if (!out->reject.code) hp_codes_shrink(p, e->graph, &out->strategy, &out->reject);
    if (out->reject.code || depth == HP_EVAL_MEMORY || depth == HP_EVAL_FITS) return HP_OK;
    return depth == HP_EVAL_PLACED ? simulate(e, scratch, p, out, err)
                                   : simulate_rank(e, scratch, p, out, err);
}

bool hp_eval_allows(const hp_eval_setup *setup, const hp_strategy *s, int n_devices, hp_reject *why) {
    const hp_device_class *gpu = &setup->machine->device; /* where the device is one */
    if ((setup->mode == HP_MODE_TRAIN && !hp_graph_trains(setup->graph, why)) ||
        !hp_rules_allow(setup->rules, s, setup->graph, setup->batch, n_devices, why) ||
        !hp_device_allows(setup->device, s, setup->graph->deployed, why))
        return false;
    if (!setup->device || !hp_device_on_gpu(setup->device) || hp_device_class_has(gpu, (hp_prec)s->prec))
        return true;
    hp_refuse(why, HP_REJECT_PREC, "%s has no units for %s", gpu->name, hp_prec_names[s->prec]);
    return hp_fix(why, "--prec %s", hp_device_class_has(gpu, HP_PREC_FP16) ? "fp16" : "fp32");
}

hp_status hp_evaluate(hp_eval *e, hp_arena *arena, const hp_strategy *s, hp_eval_depth depth,
                      hp_evaluation *out, hp_error *err) {
    *out = (hp_evaluation){.strategy = *s};
    const bool allowed = hp_eval_allows(&e->setup, s, 0, &out->reject);
    hp_strategy_text(s, out->figures.strategy);
    out->figures.gpus = hp_strategy_devices(s);
    out->figures.batch = e->setup.batch;
    if (!allowed) return HP_OK;
    out->reject.code = HP_FEASIBLE;
    hp_arena *scratch = hp_arena_new();
    const hp_status status = evaluate(e, scratch, depth, out, err);
    if (status == HP_OK && out->n_role > 0) { /* what outlives the program: the result's own arena takes it */
        const size_t bytes = sizeof *out->memory_by_role * (size_t)out->n_role;
        out->memory_by_role = memcpy(hp_arena_alloc(arena, bytes), out->memory_by_role, bytes);
    }
    hp_arena_free(scratch);
    return status;
}

hp_status hp_eval_program(hp_eval *e, hp_arena *arena, const hp_program *p, const hp_strategy *s,
                          hp_evaluation *out, hp_error *err) {
    *out = (hp_evaluation){.strategy = *s, .tasks = all_tasks(p)};
    hp_strategy_text(s, out->figures.strategy);
    out->figures.gpus = hp_program_ranks(p);
    out->figures.batch = e->setup.batch;
    use_graph(e, s);
    check_memory(e, arena, p, out);
    if (!out->reject.code) hp_codes_shrink(p, e->graph, s, &out->reject);
    return out->reject.code ? HP_OK : simulate(e, arena, p, out, err);
}

hp_status hp_eval_trace(hp_eval *e, hp_arena *arena, const hp_program *p, hp_draws draw,
                        hp_sim_result *result, hp_error *err) {
    const hp_sim_costs costs = hp_costs_of_program(arena, e->cache, p, e->graph);
    hp_sim_options o = hp_figures_drawn(&e->setup, p, draw);
    o.want_spans = true;
    HP_TRY(hp_sim_run(arena, p, e->graph, e->setup.machine, &costs, &o, result, err));
    if (all_tasks(p) * p->dp > TRACE_SPANS) result->n_rank = p->n_role;
    return HP_OK;
}
