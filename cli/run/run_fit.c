/* run_fit.c - which machine there is, and the plan's strategy on it. */
#include "cli/run/run_fit.h"

#include "cli/commands/local_gpu.h"
#include "base/units.h"
#include "sim/search/conditions.h"
#include "sim/shrink/shrink.h"

enum { MOST_TRIES = 8 }; /* with less memory each time */

/* --- the machine --- */

static hp_status at_hand(const run_fit *f, hp_plan *plan, hp_machine *m, hp_error *err) {
    local_gpu gpu;
    const hp_device_info *d = plan->device;
    if (hp_device_on_gpu(d)) {
        const hp_status found = local_gpu_find(&gpu, err);
        if (found == HP_OK) return hp_machine_of_gpus(d, &gpu.gpu, m, err);
        if (f->keep_device) return found;
        HP_TRY(hp_plan_on_device(plan, hp_devices[HP_DEVICE_CPU].name, err));
    }
    return hp_machine_load("local", m, err);
}

/* The machine at hand with the given number of nodes and its free memory. */
static hp_status machine_here(const run_fit *f, const run_offer *o, hp_plan *plan, hp_error *err) {
    hp_machine m;
    HP_TRY(at_hand(f, plan, &m, err));
    m.nodes = o->given.nodes;
    if (o->given.most_slots && o->given.most_slots < m.devices_per_node)
        m.devices_per_node = o->given.most_slots;
    if (m.share_cpu && o->here.free_bytes < m.device.memory_bytes) m.device.memory_bytes = o->here.free_bytes;
    plan->machine = m;
    return HP_OK;
}

static hp_status machine_left(hp_arena *arena, const run_offer *o, hp_plan *plan, hp_error *err) {
    if (o->given.nodes >= plan->machine.nodes) return HP_OK;
    return hp_machine_set(&plan->machine, hp_arena_printf(arena, "nodes=%d", o->given.nodes), err);
}

/* Ranks that share cores are no fewer than they were before some were lost. */
static int devices_of(const run_fit *f, const run_offer *o, const hp_plan *plan) {
    const int asked = hp_strategy_devices(&plan->strategy);
    int n = hp_machine_devices(&plan->machine);
    if (!f->here && plan->machine.nodes == 1 && n < asked) n = asked;
    if (o->given.slots && o->given.slots < n) n = o->given.slots;
    return n > f->lost ? n - f->lost : 1;
}

/* Costs, where the machine is another; what was tried out on the plan's own is of no matter here. */
static hp_status conditions_of(hp_arena *arena, hp_db *db, bool another, const hp_plan *plan,
                               hp_eval_setup *setup, hp_error *err) {
    HP_TRY(hp_conditions_read(arena, db, plan, setup, err));
    if (!another) return HP_OK;
    hp_cost_table *table = NULL;
    HP_TRY(hp_cost_load(arena, NULL, &plan->machine, &table, err));
    setup->table = table;
    setup->memory_limit = 0;
    setup->framework = NULL;
    setup->eager = false;
    setup->straggler_rank = -1;
    return HP_OK;
}

/* --- the strategy --- */

static hp_status shrink(hp_arena *arena, const hp_strategy *asked, int n_devices, hp_eval_setup *setup,
                        hp_plan *plan, hp_prediction *p, hp_error *err) {
    plan->strategy = *asked;
    HP_TRY(hp_plan_graph(arena, plan, &plan->graph, err));
    hp_conditions_of_plan(plan, setup);
    hp_eval *e = hp_eval_new(arena, setup);
    const hp_question q = hp_eval_question(e, asked, n_devices);
    HP_TRY(hp_search_shrink(e, &q, &plan->strategy, err));
    return hp_predict(arena, plan, setup, p, err);
}

/* Until processes and copies for checkpoints have room, too. */
static hp_status fit(hp_arena *arena, const run_here *here, const run_offer *o, int n_devices,
                     hp_eval_setup *setup, hp_plan *plan, hp_prediction *p, hp_error *err) {
    const hp_strategy asked = plan->strategy;
    int64_t *memory = &plan->machine.device.memory_bytes;
    for (int i = 0; i < MOST_TRIES; i++) {
        HP_TRY(shrink(arena, &asked, n_devices, setup, plan, p, err));
        const int64_t lacks = run_here_lacks(arena, plan, here, o);
        if (!lacks || lacks >= *memory) break;
        *memory -= lacks;
    }
    return HP_OK;
}

/* --- what is said --- */

static bool has_batch_norm(const hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].op == HP_BN) return true;
    return false;
}

static const char *text_of(hp_arena *arena, const hp_strategy *s) {
    hp_strategy plain = *s;
    plain.cut.n = 0;
    return hp_strategy_text(&plain, hp_arena_alloc(arena, HP_STRATEGY_TEXT));
}

static const char *plural(int n) {
    return n == 1 ? "" : "s";
}

static void say(hp_arena *arena, const run_fit *f, const hp_plan *was, const hp_plan *is, int n_devices) {
    char unlike[HP_UNLIKE_TEXT], now[32], before[32];
    const bool alike = is->mode == HP_MODE_INFER ||
                       hp_trains_alike(&was->strategy, &is->strategy, has_batch_norm(is->graph), unlike);
    fprintf(stderr,
            "hplan: fitted to %d %s%s on %d node%s: %s -> %s%s%s; batch %lld as before: %s%s; a step is "
            "predicted "
            "to take %s%s, %s on %s%s\n",
            n_devices, hp_device_on_gpu(is->device) ? "GPU" : "core", plural(n_devices), is->machine.nodes,
            plural(is->machine.nodes), text_of(arena, &was->strategy), text_of(arena, &is->strategy),
            was->device == is->device ? "" : " on device ", was->device == is->device ? "" : is->device->name,
            (long long)is->batch, alike ? "the same results but for rounding" : "the results differ, as ",
            alike ? "" : unlike, hp_format_seconds(is->step_s, now), f->here ? " here" : "",
            hp_format_seconds(was->step_s, before), was->machine.name,
            f->here ? "" : " with all its devices");
}

/* --- all of it --- */

static bool wanted(hp_arena *arena, const run_fit *f, const run_here *here, const run_offer *o,
                   const hp_plan *plan) {
    hp_error why;
    if (f->here) return f->lost > 0 || run_here_check(arena, plan, here, &why) == HP_EPLAN;
    return f->elastic && (f->lost > 0 || o->given.nodes < run_here_nodes(arena, plan, here));
}

hp_status run_fit_plan(hp_arena *arena, hp_db *db, const run_fit *f, const run_here *here, hp_plan *plan,
                       hp_prediction *p, bool *fitted, hp_error *err) {
    run_offer o;
    hp_eval_setup setup;
    const hp_plan was = *plan;
    *fitted = false;
    if (!f->here && !f->elastic) return HP_OK;
    HP_TRY(run_offer_read(plan, here->hostfile, &o, err));
    if (!wanted(arena, f, here, &o, plan)) return HP_OK;
    HP_TRY(f->here ? machine_here(f, &o, plan, err) : machine_left(arena, &o, plan, err));
    HP_TRY(conditions_of(arena, db, f->here, plan, &setup, err));
    const int n_devices = devices_of(f, &o, plan);
    HP_TRY(fit(arena, here, &o, n_devices, &setup, plan, p, err));
    *fitted = true;
    say(arena, f, &was, plan, n_devices);
    return HP_OK;
}
