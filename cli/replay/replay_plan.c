/* replay_plan.c - the ways to carry the traffic, and a plan for each. */
#include "cli/commands/run_here.h"
#include "cli/options/simulate.h"
#include "cli/replay/cli_replay.h"
#include "plan/program/lanes.h"

#include <string.h>

enum { MOST_SERIES = 64 };

/* --- which --- */

static hp_status add(hp_arena *arena, replay_result *x, const char *comm, hp_error *err) {
    int32_t choice[HP_TRAFFICS];
    if (x->n == MOST_SERIES) return hp_fail(err, HP_EUSAGE, "--comm: at most %d ways", MOST_SERIES);
    HP_TRY(hp_comm_parse(comm, choice, err));
    replay_series *s = &x->series[x->n++];
    *s = (replay_series){.comm = hp_arena_strdup(arena, comm)};
    s->mix = choice[HP_TRAFFIC_ALL_TO_ALL] != choice[HP_TRAFFIC_ALLREDUCE];
    return HP_OK;
}

/* The single ones first. */
static hp_status add_all(hp_arena *arena, const hp_device_info *device, replay_result *x, hp_error *err) {
    const char *const *name = hp_backend_names;
    for (int b = 0; b < HP_BACKENDS; b++)
        if (hp_device_has_backend(device, (hp_backend)b)) HP_TRY(add(arena, x, name[b], err));
    for (int a = 0; a < HP_BACKENDS; a++)
        for (int b = 0; b < HP_BACKENDS; b++)
            if (a != b && hp_device_has_backend(device, (hp_backend)a) &&
                hp_device_has_backend(device, (hp_backend)b))
                HP_TRY(
                    add(arena, x, hp_arena_printf(arena, "allreduce:%s+alltoall:%s", name[b], name[a]), err));
    return HP_OK;
}

hp_status replay_list(hp_arena *arena, const replay_request *r, const hp_device_info *device,
                      replay_result *x, hp_error *err) {
    *x = (replay_result){.series = HP_NEW(arena, replay_series, MOST_SERIES), .single = -1};
    if (!r->comm) return add_all(arena, device, x, err);
    char *rest = hp_arena_strdup(arena, r->comm);
    for (char *word = strsep(&rest, ","); word; word = strsep(&rest, ",")) HP_TRY(add(arena, x, word, err));
    return HP_OK;
}

/* --- a plan --- */

/* Chooses machine and costs as `simulate` would, which needs some network. */
static hp_status prepare(hp_arena *arena, const replay_request *r, const char *comm, simulate_setup *s,
                         hp_error *err) {
    const simulate_options o = {.network.net = "cnn",
                                .network.image = "28",
                                .step.mode = "infer",
                                .step.batch = hp_arena_printf(arena, "%lld", (long long)r->ranks),
                                .machine.name = r->machine,
                                .machine.device = r->device,
                                .costs.table = r->cost,
                                .strategy =
                                    hp_arena_printf(arena, "dp=%lld,comm=%s", (long long)r->ranks, comm)};
    return simulate_prepare(arena, &o, s, err);
}

static hp_status way_of(const replay_request *r, const hp_plan *plan, hp_replay_way *way, hp_error *err) {
    hp_machine as = plan->machine;
    if (r->as) HP_TRY(hp_machine_load(r->as, &as, err));
    const double share =
        as.device.is_cpu && as.devices_per_node > 0 ? as.devices_per_node : 1; /* share of a node's cores and
                                                                           * memory */
    *way = (hp_replay_way){.ranks = (int32_t)r->ranks,
                           .per_node = plan->machine.nodes > 1 ? plan->machine.devices_per_node : 0,
                           .device = plan->device,
                           .flops_per_s = as.device.flops_per_s / share,
                           .bytes_per_s = as.device.bytes_per_s / share};
    memcpy(way->comm, plan->strategy.comm, sizeof way->comm);
    return HP_OK;
}

static hp_status build(hp_arena *arena, const replay_request *r, const char *comm, race_entry *e,
                       hp_error *err) {
    simulate_setup s;
    hp_replay_way way;
    hp_reject why = {.code = HP_FEASIBLE};
    HP_TRY(prepare(arena, r, comm, &s, err));
    if (!hp_device_allows(s.device, &s.curves.strategy, true, &why))
        return hp_fail(err, HP_EUSAGE, "--comm: %s", why.limit);
    e->plan = simulate_plan(&s, &s.curves.strategy, r->ranks);
    HP_TRY(hp_plan_build(arena, &e->plan, NULL, err));
    HP_TRY(way_of(r, &e->plan, &way, err));
    hp_program *p = hp_replay_program(arena, e->plan.graph, &r->replay, &way);
    HP_TRY(hp_lanes(arena, p, e->plan.graph, err));
    hp_plan_use(&e->plan, p);
    const run_here here = {.path = "the replay",
                           .hostfile = r->hostfile,
                           .force = true,
                           .smaller = "give a smaller batch or fewer tokens"};
    HP_TRY(run_here_check(arena, &e->plan, &here, err));
    return hp_predict_program(arena, &e->plan, p, &s.eval, &e->prediction, err);
}

hp_status replay_plan(hp_arena *arena, const replay_request *r, const workspace *w, int i, replay_series *s,
                      hp_error *err) {
    race_entry *e = &s->entry;
    *e = (race_entry){.number = i + 1, .work = *w};
    snprintf(e->work.db, sizeof e->work.db, "%.4127s/replay-%d.db", w->dir, e->number);
    HP_TRY(build(arena, r, s->comm, e, err));
    e->expected_s = e->plan.step_s;
    return hp_predict_store(e->work.db, &e->plan, &e->prediction, NULL, err);
}
