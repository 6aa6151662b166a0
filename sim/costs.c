/* costs.c - fills in what each task takes; equal tasks of the micro-batches and of other candidates are
 * looked up once. */
#include "sim/costs.h"

#include "costmodels/framework/framework.h"

#include "plan/base/hash.h"
#include "plan/graph/alike.h"
#include "plan/lower/placement.h"
#include "plan/program/work.h"

#include <math.h>
#include <string.h>

typedef struct cache_entry {
    hp_work_case key;
    bool used;
    hp_cost cost;
    double share;
    int kernels; /* that a framework runs for it */
} cache_entry;

struct hp_cost_cache {
    hp_arena *arena;
    const hp_cost_table *table;
    const hp_machine *machine;
    const hp_framework *framework; /* NULL: hplan itself */
    cache_entry *entry;            /* open addressing, a power of two of slots */
    int n, slots;
    const int32_t *alike; /* per layer of the network that it is for; NULL: not known yet */
    hp_cost_cache *of_class[1 + HP_MORE_CLASSES]; /* where there are several; else NULL */
};

hp_cost_cache *hp_cost_cache_new(hp_arena *arena, const hp_cost_table *t, const hp_machine *m,
                                 const hp_framework *f) {
    hp_cost_cache *c = HP_NEW(arena, hp_cost_cache, 1);
    *c = (hp_cost_cache){.arena = arena, .table = t, .machine = m, .framework = f, .slots = 4096};
    c->entry = HP_NEW(arena, cache_entry, c->slots);
    for (int k = 0; k < hp_machine_classes(m) && m->mix.n_class > 0; k++) {
        hp_machine *one = HP_NEW(arena, hp_machine, 1);
        *one = hp_machine_of_class(m, k);
        c->of_class[k] = hp_cost_cache_new(arena, t, one, f);
    }
    return c;
}

hp_cost_cache *hp_costs_of_class(hp_cost_cache *c, int class) {
    return c->of_class[class] ? c->of_class[class] : c;
}

hp_cost hp_costs_work(const hp_cost_cache *c, const hp_work *w) {
    return hp_cost_compute(c->table, c->machine, w);
}

const hp_machine *hp_costs_machine(const hp_cost_cache *c) {
    return c->machine;
}

static cache_entry *slot_of(const hp_cost_cache *c, const hp_work_case *key) {
    uint64_t i = hp_hash64(key, sizeof *key, 0);
    for (;; i++) {
        cache_entry *e = &c->entry[i & (uint64_t)(c->slots - 1)];
        if (!e->used || memcmp(&e->key, key, sizeof *key) == 0) return e;
    }
}

static void grow(hp_cost_cache *c) {
    const cache_entry *old = c->entry;
    const int n = c->slots;
    c->slots *= 2;
    c->entry = HP_NEW(c->arena, cache_entry, c->slots);
    for (int i = 0; i < n; i++) {
        if (old[i].used) *slot_of(c, &old[i].key) = old[i];
    }
}

/* The key's slot; one that is not used is the caller's to fill in. */
static cache_entry *slot_for(hp_cost_cache *c, const hp_work_case *key) {
    cache_entry *e = slot_of(c, key);
    if (e->used) return e;
    if (2 * ++c->n > c->slots) {
        grow(c);
        e = slot_of(c, key);
    }
    e->key = *key;
    return e;
}

static cache_entry look_up(const hp_cost_cache *c, const hp_work *w) {
    return (cache_entry){.used = true,
                         .kernels = 1,
                         .cost = hp_cost_compute(c->table, c->machine, w),
                         .share = hp_cost_share(c->table, c->machine, w)};
}

/* What a framework does beside the kernel. */
static void add_passes(const hp_cost_cache *c, const hp_graph *g, hp_dtype dtype, const hp_work_case *key,
                       cache_entry *e) {
    const hp_framework_passes p = hp_framework_passes_of(c->framework, c->machine, g, dtype, key);
    hp_work pass = {.bytes = p.kernels > 0 ? p.bytes / p.kernels : 0};
    snprintf(pass.key, sizeof pass.key, "pass %s", hp_dtype_names[dtype]);
    for (int k = 0; k < p.kernels; k++) {
        const hp_cost one = hp_cost_compute(c->table, c->machine, &pass);
        e->cost.seconds += one.seconds;
        e->cost.low += one.low;
        e->cost.high += one.high;
    }
    e->kernels += p.kernels;
}

/* A kernel of few thread blocks leaves the rest of the device idle. */
static void limit_by_blocks(const hp_cost_cache *c, const hp_graph *g, hp_dtype dtype,
                            const hp_work_case *key, const hp_work *w, cache_entry *e) {
    const int blocks = hp_framework_blocks(c->framework, c->machine, g, key);
    if (!blocks) return;
    const bool backward = key->op == HP_TASK_BWD || key->op == HP_TASK_BSTATS;
    const double each_s = hp_cost_block_seconds(c->table, c->machine, backward ? "bwd.bn" : "fwd.bn", blocks);
    const hp_dtype type = hp_tensor_dtype(&g->tensor[g->layer[key->layer].out], dtype);
    const double least_s = c->machine->device.launch_s + each_s * w->bytes / hp_dtype_bytes(type) / blocks;
    const double longer = e->cost.seconds > 0 ? least_s / e->cost.seconds : 1;
    if (longer <= 1) return;
    e->cost.seconds *= longer;
    e->cost.low *= longer;
    e->cost.high *= longer;
    e->share /= longer;
}

/* Layers that are alike take as long. What a framework does goes by a layer's neighbours, too. */
static hp_work_case shared_case(hp_cost_cache *c, const hp_graph *g, const hp_work_case *key) {
    hp_work_case shared = *key;
    if (c->framework || g->deployed || key->layer < 0) return shared;
    if (!c->alike) c->alike = hp_graph_alike(c->arena, g);
    shared.layer = c->alike[key->layer];
    return shared;
}

static cache_entry case_cost(hp_cost_cache *c, const hp_graph *g, hp_dtype dtype, const hp_work_case *own) {
    const hp_work_case shared = shared_case(c, g, own), *key = &shared;
    cache_entry *e = slot_for(c, key);
    if (!e->used) {
        hp_work w = hp_work_of_case(g, dtype, key);
        if (c->framework) {
            hp_framework_units(c->framework, c->machine, &w);
            hp_framework_shorten(c->framework, c->machine, g, dtype, key, &w);
            hp_framework_pad(c->framework, c->machine, g, key, &w);
        }
        *e = look_up(c, &w);
        if (c->framework) {
            limit_by_blocks(c, g, dtype, key, &w, e);
            add_passes(c, g, dtype, key, e);
        }
        e->key = *key;
    }
    return *e;
}

/* Its length is given. */
static cache_entry dummy_cost(const hp_task *t) {
    const double s = (double)t->count * 1e-9;
    return (cache_entry){.cost = {.seconds = s, .low = s, .high = s, .source = HP_SOURCE_MEASURED}};
}

static cache_entry compute_cost(hp_cost_cache *c, const hp_program *p, const hp_graph *g, const hp_role *r,
                                int task) {
    hp_work_case key;
    if (r->task[task].op == HP_TASK_DUMMY) return dummy_cost(&r->task[task]);
    if (hp_work_case_of(p, g, r, task, &key)) return case_cost(c, g, (hp_dtype)p->dtype, &key);
    const hp_work w = hp_task_work(p, g, r, task);
    return look_up(c, &w);
}

hp_cost hp_costs_case(hp_cost_cache *cache, const hp_graph *g, hp_dtype dtype, const hp_work_case *c,
                      double *share) {
    cache_entry best = case_cost(hp_costs_of_class(cache, 0), g, dtype, c);
    for (int k = 1; k < hp_machine_classes(cache->machine); k++) {
        const cache_entry e = case_cost(hp_costs_of_class(cache, k), g, dtype, c);
        if (e.cost.seconds < best.cost.seconds) best = e;
    }
    *share = best.share;
    return best.cost;
}

/* Messages and collectives share the table; no layer has such a number. */
enum { TRANSFERS = -2 };

static hp_work_case transfer_case(hp_task_op op, int64_t bytes) {
    hp_work_case key;
    memset(&key, 0, sizeof key);
    key.layer = TRANSFERS;
    key.op = (uint8_t)op;
    key.in_elems = bytes;
    return key;
}

static int64_t bytes_of(const hp_task *k) {
    return k->count * hp_dtype_bytes((hp_dtype)k->dtype);
}

hp_cost hp_costs_p2p(hp_cost_cache *c, hp_wire by, bool same_node, int64_t bytes) {
    hp_work_case key = transfer_case(HP_TASK_SEND, bytes);
    key.in[0] = (int32_t)by;
    key.in[1] = same_node;
    cache_entry *e = slot_for(c, &key);
    if (!e->used) e->cost = hp_cost_p2p(c->table, c->machine, by, same_node, (double)bytes);
    e->used = true;
    return e->cost;
}

hp_cost hp_costs_collective(hp_cost_cache *c, const hp_collective_call *what, int64_t bytes) {
    hp_work_case key = transfer_case(hp_task_of_collective(what->what), bytes);
    key.in[0] = (int32_t)what->by;
    key.in[1] = (int32_t)what->algorithm;
    key.in[2] = what->ranks;
    key.in[3] = what->per_node;
    cache_entry *e = slot_for(c, &key);
    if (!e->used) e->cost = hp_cost_collective(c->table, c->machine, what, (double)bytes);
    e->used = true;
    return e->cost;
}

static hp_cost message_cost(const hp_program_costs *c, const hp_program *p, int rank, const hp_task *k) {
    const hp_role *r = &p->role[rank % p->n_role];
    const int peer = rank - rank % p->n_role + r->queue[k->queue].peer;
    const hp_machine *m = c->cache->machine;
    const bool near = hp_rank_node(p, m, rank) == hp_rank_node(p, m, peer);
    return hp_costs_p2p(c->cache, hp_wire_of(m, p->device, r->queue[k->queue].backend), near, bytes_of(k));
}

static int members_per_node(const hp_program_costs *c, const hp_program *p, int group, int replica) {
    const bool own = !p->group[group].all_replicas;
    int32_t *n = &c->per_node[group][own ? replica : 0];
    if (!*n) *n = hp_group_per_node(p, c->cache->machine, group, replica);
    return *n;
}

static hp_cost collective_cost(const hp_program_costs *c, const hp_program *p, int rank, const hp_task *k) {
    const hp_queue *queue = &p->role[rank % p->n_role].queue[k->queue];
    const int group = queue->peer;
    const hp_collective_call what = {.by =
                                         hp_wire_of_collective(c->cache->machine, p->device, queue->backend),
                                     .algorithm = (hp_algorithm)k->algorithm,
                                     .what = hp_task_collective(k),
                                     .ranks = hp_group_size(p, group),
                                     .per_node = members_per_node(c, p, group, rank / p->n_role)};
    return hp_costs_collective(c->cache, &what, bytes_of(k));
}

/* Another replica may lie otherwise on the nodes. */
static hp_cost elsewhere(const hp_program_costs *c, const hp_program *p, int rank, const hp_task *t,
                         hp_cost first) {
    if (t->op == HP_TASK_SEND || t->op == HP_TASK_RECV) return message_cost(c, p, rank, t);
    return hp_task_is_collective(t) ? collective_cost(c, p, rank, t) : first;
}

static hp_program_costs *costs_of_class(hp_program_costs *c, const hp_program *p, const hp_graph *g,
                                        int class);

/* Of the class of a rank's device, where the task computes. */
static const hp_program_costs *costs_at(hp_program_costs *c, const hp_program *p, const hp_graph *g, int rank,
                                        int task) {
    const hp_machine *m = c->cache->machine;
    const bool computes = p->role[rank % p->n_role].task[task].queue == 0;
    if (m->mix.n_class == 0 || !computes) return c;
    return costs_of_class(c, p, g, hp_machine_class_at(m, hp_rank_device(p, m, rank)));
}

static double slowness(const hp_program_costs *c, const hp_program *p, int rank, int task) {
    const hp_machine *m = c->cache->machine;
    if (m->mix.n_slow == 0 || p->role[rank % p->n_role].task[task].queue != 0) return 1;
    return 1 / hp_machine_speed_at(m, hp_rank_device(p, m, rank));
}

static double task_seconds(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    hp_program_costs *c = self;
    const int role = rank % p->n_role;
    if (!hp_task_works(p, &p->role[role], &p->role[role].task[task], rank / p->n_role)) return 0;
    hp_cost cost = costs_at(c, p, g, rank, task)->cost[role][task];
    if (rank != role) cost = elsewhere(c, p, rank, &p->role[role].task[task], cost);
    cost.seconds *= slowness(c, p, rank, task);
    /* a step is the mean of those with an average and those without, which nothing of the step overlaps */
    const bool sometimes = p->role[role].task[task].flags & HP_FLAG_AVERAGE;
    return sometimes && p->local > 1 ? cost.seconds / p->local : cost.seconds;
}

/* A message of a collective is one between two members alone. */
static double message_seconds(void *self, const hp_program *p, const hp_task *t, int from, int to,
                              double bytes) {
    const hp_program_costs *c = self;
    const hp_machine *m = c->cache->machine;
    const bool near = hp_rank_node(p, m, from) == hp_rank_node(p, m, to);
    const hp_queue *queue = &p->role[from % p->n_role].queue[t->queue];
    const hp_collective_call two = {.by = hp_wire_of_collective(m, p->device, queue->backend),
                                    .algorithm = (hp_algorithm)t->algorithm,
                                    .what = hp_task_collective(t),
                                    .ranks = 2,
                                    .per_node = near ? 2 : 1};
    return hp_costs_collective(c->cache, &two, (int64_t)bytes).seconds;
}

static double task_share(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    return costs_at(self, p, g, rank, task)->share[rank % p->n_role][task];
}

/* Of a message or collective between nodes, how much of its time a core is busy with it: as long as it would take within
 * a node; the rest is the network's. 0: all of it. */
static double busy_share(const hp_program_costs *c, const hp_program *p, int rank, const hp_task *k,
                         double seconds) {
    const hp_queue *queue = &p->role[rank % p->n_role].queue[k->queue];
    const hp_machine *m = c->cache->machine;
    double near = 0;
    if (hp_task_is_collective(k)) {
        const int ranks = hp_group_size(p, queue->peer);
        const hp_collective_call what = {.by = hp_wire_of_collective(m, p->device, queue->backend),
                                         .algorithm = (hp_algorithm)k->algorithm,
                                         .what = hp_task_collective(k),
                                         .ranks = ranks,
                                         .per_node = ranks};
        if (members_per_node(c, p, queue->peer, rank / p->n_role) < ranks)
            near = hp_costs_collective(c->cache, &what, bytes_of(k)).seconds;
    } else if (hp_rank_node(p, m, rank) != hp_rank_node(p, m, rank - rank % p->n_role + queue->peer)) {
        near = hp_costs_p2p(c->cache, hp_wire_of(m, p->device, queue->backend), true, bytes_of(k)).seconds;
    }
    return near > 0 && near < seconds ? near / seconds : 0;
}

static void fill_role(const hp_program_costs *c, const hp_program *p, const hp_graph *g, int role) {
    const hp_role *r = &p->role[role];
    for (int t = 0; t < r->n_task; t++) {
        const hp_task *k = &r->task[t];
        switch (hp_task_infos[k->op].queue) {
        case HP_QUEUE_COLL:
            c->cost[role][t] = collective_cost(c, p, role, k);
            c->share[role][t] = busy_share(c, p, role, k, c->cost[role][t].seconds);
            break;
        case HP_QUEUE_SEND:
        case HP_QUEUE_RECV:
            c->cost[role][t] = message_cost(c, p, role, k);
            c->share[role][t] = busy_share(c, p, role, k, c->cost[role][t].seconds);
            break;
        case HP_QUEUE_COMPUTE: {
            const cache_entry e = compute_cost(c->cache, p, g, r, t);
            c->cost[role][t] = e.cost;
            c->share[role][t] = e.share;
        }
        }
    }
}

/* --- a framework's host --- */

static bool sums_gradients(const hp_role *r, int task) {
    const hp_task *t = &r->task[task];
    return t->op == HP_TASK_ALLREDUCE && t->n_operand > 0 && r->operand[t->operand] == HP_BUF_GRADS;
}

/* Operations that start the task's kernels: of the optimiser some for every tensor. */
static double ops_of(const hp_program_costs *c, const hp_program *p, const hp_graph *g, const hp_role *r,
                     int task) {
    const hp_task *t = &r->task[task];
    double tensors = 0;
    bool sums = false;
    for (int k = 0; k < r->n_task && !sums && t->op == HP_TASK_UPDATE; k++) sums = sums_gradients(r, k);
    if (t->op != HP_TASK_UPDATE) return compute_cost(c->cache, p, g, r, task).kernels;
    for (int i = 0; i < g->n_param; i++)
        tensors += hp_param_trained(&g->param[i]) && r->place[i].here && r->place[i].offset >= t->offset &&
                   r->place[i].offset < t->offset + t->count;
    return (c->cache->framework->update_ops[g->optimizer] + (sums ? c->cache->framework->sum_ops : 0)) *
           tensors;
}

/* Sums of gradients wait half a cycle in the mean until somebody looks for them (Horovod). */
static void add_cycles(const hp_program_costs *c, const hp_program *p, int role) {
    const hp_role *r = &p->role[role];
    const double wait_s = c->cache->framework->cycle_s / 2;
    for (int t = 0; t < r->n_task; t++) {
        if (!sums_gradients(r, t)) continue;
        c->cost[role][t].seconds += wait_s;
        c->cost[role][t].low += wait_s;
        c->cost[role][t].high += wait_s;
    }
}

static bool waits_for_others(const hp_role *r, int task) {
    for (int d = r->dep_first[task]; d < r->dep_first[task + 1]; d++)
        if (r->task[r->dep[d]].queue != 0) return true;
    return false;
}

/* Is it one that brings values of another rank's rows, or takes them there? Their gradients are not sent (MPI4DL). */
static bool is_exchange(const hp_role *r, const hp_task *t) {
    return (t->op == HP_TASK_SEND || t->op == HP_TASK_RECV) && !(r->queue[t->queue].channel & 1);
}

/* Adds a halo's gradient to a map: a framework that had pasted the halo copies the gradient of the whole map instead. */
static bool undoes_paste(const hp_role *r, const hp_task *t) {
    return t->op == HP_TASK_COPY && (t->flags & HP_FLAG_ADD) &&
           r->buffer[r->operand[t->operand + 1]].kind == HP_BUF_MESSAGE;
}

/* Copies a map into one with room for halos: a framework fills that with zeros first (ZeroPad2d). */
static bool pads(const hp_role *r, const hp_task *t) {
    if (t->op != HP_TASK_COPY || (t->flags & HP_FLAG_ADD)) return false;
    const hp_buffer *to = &r->buffer[r->operand[t->operand]], *from = &r->buffer[r->operand[t->operand + 1]];
    return to->kind == HP_BUF_TENSOR && from->kind == HP_BUF_TENSOR && to->bytes > from->bytes;
}

static hp_cost whole_map(const hp_program_costs *c, const hp_program *p, const hp_role *r, int task,
                         int times) {
    hp_work pass = {.bytes = times * (double)r->buffer[r->operand[r->task[task].operand]].bytes};
    snprintf(pass.key, sizeof pass.key, "pass %s", hp_dtype_names[p->dtype]);
    return hp_cost_compute(c->cache->table, c->cache->machine, &pass);
}

static void add_pastes(const hp_program_costs *c, const hp_program *p, int role) {
    const hp_role *r = &p->role[role];
    for (int t = 0; t < r->n_task; t++) {
        hp_cost *cost = &c->cost[role][t];
        if (undoes_paste(r, &r->task[t])) {
            const hp_cost copy = whole_map(c, p, r, t, 2);
            if (copy.seconds > cost->seconds) *cost = copy;
        } else if (pads(r, &r->task[t])) {
            const hp_cost fill = whole_map(c, p, r, t, 1);
            cost->seconds += fill.seconds;
            cost->low += fill.low;
            cost->high += fill.high;
        }
    }
}

/* The host's time to start a task's kernels: modules of Python in the forward pass, which is then done again. */
static double starting_s(const hp_program_costs *c, const hp_program *p, const hp_graph *g, const hp_role *r,
                         int task) {
    const hp_framework *f = c->cache->framework;
    const bool by_module = f->module_s > 0 && r->task[task].op == HP_TASK_FWD;
    return (by_module ? f->module_s : f->dispatch_s) * ops_of(c, p, g, r, task);
}

/* The host starts operations one after another and runs ahead of the device, which waits where its kernels are shorter
 * than their operations take to be started: a task then takes that much longer. While it waits for
 * a message, the host catches up with it; where the host waits itself (MPI4DL), it is not ahead after one either. */
static void add_dispatch(const hp_program_costs *c, const hp_program *p, const hp_graph *g, int role) {
    const hp_role *r = &p->role[role];
    const double each_s = c->cache->framework->dispatch_s;
    const bool itself = c->cache->machine->device.is_cpu; /* the host computes, too */
    /* cuda.synchronize around messages and before an update */
    const bool waits = c->cache->framework->message_ops > 0 && !itself;
    double host_s = 0, device_s = 0, idle_s = 0;
    for (int t = 0; t < r->n_task; t++) {
        hp_cost *cost = &c->cost[role][t];
        if (is_exchange(r, &r->task[t])) idle_s += each_s * c->cache->framework->message_ops;
        if (r->task[t].queue != 0) continue;
        const bool joined = waits && (r->task[t].op == HP_TASK_UPDATE || waits_for_others(r, t));
        if (joined || waits_for_others(r, t)) host_s = joined ? device_s : fmin(host_s, device_s);
        const double alone_s = cost->seconds;
        if (idle_s > 0)
            host_s = fmax(host_s, device_s + alone_s) + idle_s; /* after the device was waited for */
        idle_s = 0;
        host_s += starting_s(c, p, g, r, t);
        /* the last kernel is started when its operation is */
        const double late_s = itself ? starting_s(c, p, g, r, t) : fmax(0, host_s - device_s - alone_s);
        cost->seconds += late_s;
        cost->low += late_s;
        cost->high += late_s;
        if (cost->seconds > 0) c->share[role][t] *= alone_s / cost->seconds;
        device_s += cost->seconds;
    }
}

static hp_program_costs *fill(hp_arena *arena, hp_cost_cache *cache, const hp_program *p, const hp_graph *g) {
    hp_program_costs *c = HP_NEW(arena, hp_program_costs, 1);
    c->cache = cache;
    c->cost = HP_NEW(arena, hp_cost *, p->n_role);
    c->share = HP_NEW(arena, double *, p->n_role);
    c->per_node = HP_NEW(arena, int32_t *, p->n_group);
    for (int i = 0; i < p->n_group; i++)
        c->per_node[i] = HP_NEW(arena, int32_t, p->group[i].all_replicas ? 1 : p->dp);
    for (int r = 0; r < p->n_role; r++) {
        c->cost[r] = HP_NEW(arena, hp_cost, p->role[r].n_task);
        c->share[r] = HP_NEW(arena, double, p->role[r].n_task);
        fill_role(c, p, g, r);
        if (cache->framework && cache->framework->pastes) add_pastes(c, p, r);
        if (cache->framework && cache->framework->dispatch_s > 0) add_dispatch(c, p, g, r);
        if (cache->framework && cache->framework->cycle_s > 0) add_cycles(c, p, r);
    }
    c->arena = arena;
    return c;
}

static hp_program_costs *costs_of_class(hp_program_costs *c, const hp_program *p, const hp_graph *g,
                                        int class) {
    if (!c->of_class[class]) c->of_class[class] = fill(c->arena, hp_costs_of_class(c->cache, class), p, g);
    return c->of_class[class];
}

hp_sim_costs hp_costs_of_program(hp_arena *arena, hp_cost_cache *cache, const hp_program *p,
                                 const hp_graph *g) {
    return (hp_sim_costs){task_seconds, task_share, fill(arena, cache, p, g), message_seconds};
}

double hp_costs_measured_share(const hp_sim_costs *costs, const hp_program *p, const hp_graph *g) {
    double measured = 0, all = 0;
    for (int r = 0; r < p->n_role; r++) {
        for (int t = 0; t < p->role[r].n_task; t++) {
            const hp_cost *cost = &costs_at(costs->self, p, g, r, t)->cost[r][t];
            all += cost->seconds;
            if (cost->source == HP_SOURCE_MEASURED) measured += cost->seconds;
        }
    }
    return all > 0 ? measured / all : 0;
}
