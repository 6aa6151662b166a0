/* run_here.c - compares what a plan's fullest node needs with what this node offers. Only figures count: a
 * plan for a machine of another name runs where its needs are met. */
#include "cli/commands/run_here.h"

#include "cli/commands/local_gpu.h"
#include "base/units.h"
#include "checkpoints/checkpoint_state.h"
#include "plan/lower/lower_placement.h"

/* Memory of a rank's process beside its plan: 13 MB alone, 37 MB with Open MPI 4.1 (docs/measurements.md),
 * rounded up. */
static const int64_t PROCESS_BYTES = 40000000;

/* --- what the plan asks for --- */

typedef struct demand {
    int ranks, nodes;
    int devices;                     /* devices that the plan's machine uses on the fullest node */
    int64_t node_bytes, total_bytes; /* memory of the fullest node; of all ranks */
    int64_t rank_bytes;              /* the largest rank's plan, and its copy */
    int64_t saved_bytes;             /* largest copy for a checkpoint, part of rank_bytes; 0: none is made */
} demand;

static int64_t bytes_of(const hp_plan *plan, int role, bool eval) {
    const int64_t step = plan->program->role[role].arena_bytes;
    const int64_t test = eval && plan->eval ? plan->eval->role[role].arena_bytes : 0;
    return step > test ? step : test;
}

/* The copy of its state that a rank writes from. */
static int64_t saved_bytes(hp_arena *arena, const hp_plan *plan, int rank) {
    int n;
    const int roles = plan->program->n_role;
    const hp_state_piece *piece =
        hp_state_pieces(arena, plan->program, plan->graph, rank % roles, rank / roles, &n);
    return hp_state_bytes(plan->program, piece, n);
}

static demand demand_of(hp_arena *arena, const hp_plan *plan, const run_here *here) {
    const hp_program *p = plan->program;
    const hp_machine *m = &plan->machine;
    const hp_placement at = hp_placement_of(p, m);
    demand d = {.ranks = hp_program_ranks(p)};
    int64_t *node = HP_NEW(arena, int64_t, m->nodes);
    for (int r = 0; r < d.ranks; r++) {
        const int64_t saved = here->saves ? saved_bytes(arena, plan, r) : 0,
                      bytes = bytes_of(plan, r % p->n_role, here->eval) + saved;
        const int n = hp_placement_node(&at, r);
        node[n] += bytes + PROCESS_BYTES;
        d.total_bytes += bytes + PROCESS_BYTES;
        if (node[n] > d.node_bytes) d.node_bytes = node[n];
        if (bytes > d.rank_bytes) d.rank_bytes = bytes;
        if (saved > d.saved_bytes) d.saved_bytes = saved;
        if (n >= d.nodes) d.nodes = n + 1;
    }
    const int places = hp_placement_places(&at);
    d.devices = places < m->devices_per_node ? places : m->devices_per_node;
    return d;
}

/* --- what is here --- */

/* GPUs at hand are hplan-exec's to find, or to miss with the reason. */
static bool asks_for_other_gpus(const hp_plan *plan) {
    return hp_device_on_gpu(plan->device) && !hp_device_of_machine(plan->machine.name);
}

hp_status run_offer_read(const hp_plan *plan, const char *hostfile, run_offer *o, hp_error *err) {
    local_gpu gpu;
    *o = (run_offer){.gpus = asks_for_other_gpus(plan)};
    HP_TRY(given_nodes_read(hostfile, &o->given, err));
    HP_TRY(hp_here_read(&hp_here_system, &o->here, err));
    o->devices = o->here.cores;
    if (o->gpus) o->devices = local_gpu_find(&gpu, NULL) == HP_OK ? gpu.gpu.count : 0;
    return HP_OK;
}

/* Bytes on this node. On fewer nodes than the plan was made for (--force), ranks are shared evenly. */
static int64_t bytes_here(const hp_plan *plan, const demand *d, const run_offer *o) {
    const int64_t forced = d->total_bytes / o->given.nodes;
    if (hp_device_on_gpu(plan->device) || !o->given.here) return 0;
    return forced > d->node_bytes ? forced : d->node_bytes;
}

int run_here_nodes(hp_arena *arena, const hp_plan *plan, const run_here *r) {
    return demand_of(arena, plan, r).nodes;
}

int64_t run_here_lacks(hp_arena *arena, const hp_plan *plan, const run_here *r, const run_offer *o) {
    const demand d = demand_of(arena, plan, r);
    const int64_t bytes = bytes_here(plan, &d, o);
    return bytes > o->here.free_bytes ? bytes - o->here.free_bytes : 0;
}

/* --- the answer --- */

/* Options of the network's input; those of text say it in the network's name. */
static const char *input_of(hp_arena *arena, const hp_plan *plan) {
    if (hp_graph_reads_ids(plan->graph)) return "";
    const char *image = plan->image_h == plan->image_w
                            ? hp_arena_printf(arena, "%d", plan->image_h)
                            : hp_arena_printf(arena, "%dx%d", plan->image_h, plan->image_w);
    return hp_arena_printf(arena, " --image %s --classes %d", image, plan->classes);
}

/* The command that plans the same work for this machine, with so many samples a step. */
static const char *plan_again(hp_arena *arena, const hp_plan *plan, int64_t batch) {
    if (plan->model) return "make the plan again with hplan simulate --machine local";
    return hp_arena_printf(
        arena, "plan for this machine: hplan simulate --net %s%s%s --batch %lld --machine local%s", plan->net,
        input_of(arena, plan), plan->mode == HP_MODE_INFER ? " --mode infer" : "", (long long)batch,
        hp_device_on_gpu(plan->device) || plan->device->kind == HP_DEVICE_CPU
            ? ""
            : hp_arena_printf(arena, " --device %s", plan->device->name));
}

/* The batch for as many of the plan's ranks as there are devices here. */
static int64_t share_of_batch(const hp_plan *plan, const demand *d, const run_offer *o) {
    const int here = o->devices > 0 ? o->devices : o->here.cores;
    const int64_t share = here < d->ranks ? plan->batch * here / d->ranks : plan->batch;
    return share > 0 ? share : 1;
}

static const char *plural(int n) {
    return n == 1 ? "" : "s";
}

/* Suggests what would do, besides planning for this machine. */
static const char *ways_on(hp_arena *arena, const demand *d, const run_offer *o) {
    if (d->nodes > o->given.nodes) return hp_arena_printf(arena, "give %d nodes with --hostfile, ", d->nodes);
    const bool on_cores = d->devices <= o->here.cores && d->node_bytes <= o->here.free_bytes;
    return o->gpus && on_cores ? "try it on the CPU with --device cpu, " : "";
}

static const char *limited_by(hp_arena *arena, const char *limit) {
    return limit[0] ? hp_arena_printf(arena, ", limited by %s", limit) : "";
}

static hp_status refuse_machine(hp_arena *arena, const hp_plan *plan, const run_here *r, const demand *d,
                                const run_offer *o, hp_error *err) {
    const char *what = hp_device_on_gpu(plan->device) ? "GPU" : "core";
    const bool none = o->devices == 0; /* then --force has nothing to run on */
    char rank[32];
    return hp_fail(
        err, HP_EPLAN,
        "%s is for %s: %d rank%s of at most %s on %d node%s with %d %s%s each; here %s %d node%s with "
        "%d %s%s%s: %s%s; or shrink it to what is here with --fit-here, queue it with hplan sbatch%s",
        r->path, plan->machine.name, d->ranks, plural(d->ranks), hp_format_bytes((double)d->rank_bytes, rank),
        d->nodes, plural(d->nodes), d->devices, what, plural(d->devices), o->given.nodes == 1 ? "is" : "are",
        o->given.nodes, plural(o->given.nodes), o->devices, what, plural(o->devices),
        o->gpus ? "" : limited_by(arena, o->here.cores_limit), ways_on(arena, d, o),
        plan_again(arena, plan, share_of_batch(plan, d, o)),
        none ? "" : ", or run it all the same with --force");
}

static hp_status refuse_slots(const run_here *r, const demand *d, const run_offer *o, hp_error *err) {
    return hp_fail(err, HP_EPLAN,
                   "%s has %d rank%s, %s has %d slot%s: add slots, or run it all the same with --force",
                   r->path, d->ranks, plural(d->ranks), r->hostfile, o->given.slots, plural(o->given.slots));
}

static const char *saved_text(hp_arena *arena, const demand *d) {
    char bytes[32];
    return d->saved_bytes ? hp_arena_printf(arena, " (up to %s of it to write checkpoints from)",
                                            hp_format_bytes((double)d->saved_bytes, bytes))
                          : "";
}

static hp_status refuse_memory(hp_arena *arena, const hp_plan *plan, const run_here *r, const demand *d,
                               int64_t bytes, const run_offer *o, hp_error *err) {
    char needs[32], rank[32], process[32], unused[32], all[32];
    return hp_fail(
        err, HP_EPLAN,
        "%s is for %s and needs %s of memory on this node: %d rank%s in all, of at most %s%s and %s for the "
        "process; here %s of %s are free%s: free some, %s%s",
        r->path, plan->machine.name, hp_format_bytes((double)bytes, needs), d->ranks, plural(d->ranks),
        hp_format_bytes((double)d->rank_bytes, rank), saved_text(arena, d),
        hp_format_bytes((double)PROCESS_BYTES, process), hp_format_bytes((double)o->here.free_bytes, unused),
        hp_format_bytes((double)o->here.memory_bytes, all), limited_by(arena, o->here.memory_limit),
        r->smaller ? "or " : "shrink it with --fit-here, or ",
        r->smaller ? r->smaller : plan_again(arena, plan, plan->batch));
}

hp_status run_here_check(hp_arena *arena, const hp_plan *plan, const run_here *r, hp_error *err) {
    run_offer o;
    HP_TRY(run_offer_read(plan, r->hostfile, &o, err));
    const demand d = demand_of(arena, plan, r);
    const bool known = !hp_device_on_gpu(plan->device) || o.gpus;
    const bool short_of = d.nodes > o.given.nodes || (known && o.given.here && d.devices > o.devices);
    if (short_of && !r->force) return refuse_machine(arena, plan, r, &d, &o, err);
    if (o.given.slots && d.ranks > o.given.slots && !r->force) return refuse_slots(r, &d, &o, err);
    const int64_t bytes = bytes_here(plan, &d, &o);
    return bytes > o.here.free_bytes ? refuse_memory(arena, plan, r, &d, bytes, &o, err) : HP_OK;
}
