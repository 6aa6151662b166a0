/* cost_cache.c - looks up equal tasks of micro-batches and candidates only once. */
#include "sim/costs/cost_cache.h"

#include "costmodels/framework/framework.h"

#include "base/hash.h"
#include "networks/graph/alike.h"
#include "plan/program/work.h"

#include <math.h>
#include <string.h>

typedef struct cache_entry {
    hp_work_case key;
    bool used;
    hp_task_cost is;
} cache_entry;

struct hp_cost_cache {
    hp_arena *arena;
    const hp_cost_table *table;
    const hp_machine *machine;
    const hp_framework *framework; /* NULL: hplan itself */
    cache_entry *entry;            /* open addressing, a power of two of slots */
    int n, slots;
    const int32_t *alike; /* per layer of the current network; NULL: not computed yet */
    hp_cost_cache *of_class[1 + HP_MORE_CLASSES]; /* one per class, if there are several; otherwise NULL */
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

const hp_framework *hp_costs_framework(const hp_cost_cache *c) {
    return c->framework;
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

/* The slot for a key; the caller fills an empty one. */
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

static hp_task_cost look_up(const hp_cost_cache *c, const hp_work *w) {
    return (hp_task_cost){.kernels = 1,
                          .cost = hp_cost_compute(c->table, c->machine, w),
                          .share = hp_cost_share(c->table, c->machine, w)};
}

/* Adds a framework's passes beside the kernel. */
static void add_passes(const hp_cost_cache *c, const hp_graph *g, hp_dtype dtype, const hp_work_case *key,
                       hp_task_cost *e) {
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

/* A kernel with few thread blocks leaves the rest of the device idle. */
static void limit_by_blocks(const hp_cost_cache *c, const hp_graph *g, hp_dtype dtype,
                            const hp_work_case *key, const hp_work *w, hp_task_cost *e) {
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

/* Sums over all tokens read the map and its gradient once more, by as many thread blocks as there are
 * groups of channels. */
static void add_column_sums(const hp_cost_cache *c, const hp_graph *g, hp_dtype dtype,
                            const hp_work_case *key, hp_task_cost *e) {
    const int blocks = hp_framework_column_blocks(c->framework, c->machine, g, key);
    if (!blocks) return;
    const hp_dtype own = hp_tensor_dtype(&g->tensor[g->layer[key->layer].out], dtype),
                   type = c->framework->kernels.autocast ? HP_F32 : own;
    const double elems = hp_work_elems(key->out),
                 each_s = hp_cost_block_seconds(c->table, c->machine, "bwd.layernorm", blocks);
    hp_work pass = {.bytes = 2 * elems * hp_dtype_bytes(type)};
    snprintf(pass.key, sizeof pass.key, "pass %s", hp_dtype_names[dtype]);
    const hp_cost all = hp_cost_compute(c->table, c->machine, &pass);
    const double longer = fmax(1, (c->machine->device.launch_s + each_s * elems / blocks) / all.seconds);
    e->cost.seconds += longer * all.seconds;
    e->cost.low += longer * all.low;
    e->cost.high += longer * all.high;
    e->kernels++;
}

/* Rates were fitted to a layer's kernel and passes together: what is not known of one is not known of the
 * other. */
static void widen(hp_cost *all, const hp_cost *kernel) {
    if (kernel->seconds <= 0) return;
    all->low = fmin(all->low, all->seconds * kernel->low / kernel->seconds);
    all->high = fmax(all->high, all->seconds * kernel->high / kernel->seconds);
}

/* Equal layers take equally long. A framework's passes also depend on a layer's neighbours. */
static hp_work_case shared_case(hp_cost_cache *c, const hp_graph *g, const hp_work_case *key) {
    hp_work_case shared = *key;
    if (c->framework || g->deployed || key->layer < 0) return shared;
    if (!c->alike) c->alike = hp_graph_alike(c->arena, g);
    shared.layer = c->alike[key->layer];
    return shared;
}

static hp_task_cost case_cost(hp_cost_cache *c, const hp_graph *g, hp_dtype dtype, const hp_work_case *own) {
    const hp_work_case shared = shared_case(c, g, own), *key = &shared;
    cache_entry *e = slot_for(c, key);
    if (e->used) return e->is;
    hp_work w = hp_work_of_case(g, dtype, key);
    if (c->framework) {
        w.library = true;
        hp_framework_units(c->framework, c->machine, &w);
        hp_framework_amounts(c->framework, c->machine, g, dtype, key, &w);
        hp_framework_pad(c->framework, c->machine, g, key, &w);
    }
    e->is = look_up(c, &w);
    const hp_cost kernel = e->is.cost;
    if (c->framework) {
        limit_by_blocks(c, g, dtype, key, &w, &e->is);
        add_passes(c, g, dtype, key, &e->is);
        add_column_sums(c, g, dtype, key, &e->is);
        widen(&e->is.cost, &kernel);
    }
    e->used = true;
    return e->is;
}

/* Its length is given. */
static hp_task_cost dummy_cost(const hp_task *t) {
    const double s = (double)t->dummy.ns * 1e-9;
    return (hp_task_cost){.cost = {.seconds = s, .low = s, .high = s, .source = HP_SOURCE_MEASURED}};
}

hp_task_cost hp_costs_task(hp_cost_cache *c, const hp_program *p, const hp_graph *g, const hp_role *r,
                           int task) {
    hp_work_case key;
    if (r->task[task].op == HP_TASK_DUMMY) return dummy_cost(&r->task[task]);
    if (hp_work_case_of(p, g, r, task, &key)) return case_cost(c, g, (hp_dtype)p->dtype, &key);
    hp_work w = hp_task_work(p, g, r, task);
    if (c->framework && r->task[task].op == HP_TASK_UPDATE)
        w.bytes *= hp_framework_update_factor(c->framework, g);
    return look_up(c, &w);
}

hp_cost hp_costs_case(hp_cost_cache *cache, const hp_graph *g, hp_dtype dtype, const hp_work_case *c,
                      double *share) {
    hp_task_cost best = case_cost(hp_costs_of_class(cache, 0), g, dtype, c);
    for (int k = 1; k < hp_machine_classes(cache->machine); k++) {
        const hp_task_cost e = case_cost(hp_costs_of_class(cache, k), g, dtype, c);
        if (e.cost.seconds < best.cost.seconds) best = e;
    }
    *share = best.share;
    return best.cost;
}

/* Messages and collectives share the table, under a number that no layer has. */
enum { TRANSFERS = -2 };

static hp_work_case transfer_case(hp_task_op op, int64_t bytes) {
    hp_work_case key;
    memset(&key, 0, sizeof key);
    key.layer = TRANSFERS;
    key.op = (uint8_t)op;
    key.in_elems = bytes;
    return key;
}

hp_cost hp_costs_p2p(hp_cost_cache *c, hp_wire by, bool same_node, int64_t bytes) {
    hp_work_case key = transfer_case(HP_TASK_SEND, bytes);
    key.in[0] = (int32_t)by;
    key.in[1] = same_node;
    cache_entry *e = slot_for(c, &key);
    if (!e->used) e->is.cost = hp_cost_p2p(c->table, c->machine, by, same_node, (double)bytes);
    e->used = true;
    return e->is.cost;
}

hp_cost hp_costs_collective(hp_cost_cache *c, const hp_collective_call *what, int64_t bytes) {
    hp_work_case key = transfer_case(hp_task_of_collective(what->what), bytes);
    key.in[0] = (int32_t)what->by;
    key.in[1] = (int32_t)what->algorithm;
    key.in[2] = what->ranks;
    key.in[3] = what->per_node;
    cache_entry *e = slot_for(c, &key);
    if (!e->used) e->is.cost = hp_cost_collective(c->table, c->machine, what, (double)bytes);
    e->used = true;
    return e->is.cost;
}
