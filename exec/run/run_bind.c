/* run_bind.c - shares of the node's cores (hwloc). Where hwloc fails (no topology, no permission) ranks stay
 * unbound: slower, not wrong. */
#include "exec/run/run_bind.h"

#include "base/hash.h"
#include "machines/here.h"

#include <hwloc.h>
#include <string.h>

/* --- arithmetic --- */

hp_share hp_bind_share(const int32_t *numa, int cores, int index, int ranks, int threads) {
    const int first = (int)((int64_t)index * cores / ranks),
              end = (int)((int64_t)(index + 1) * cores / ranks);
    hp_share best = {first, 0};
    for (int from = first, to; from < end; from = to) {
        for (to = from; to < end && numa[to] == numa[from]; to++) {
        }
        if (to - from > best.count) best = (hp_share){from, to - from};
    }
    return best.count >= threads ? best : (hp_share){first, end - first};
}

/* --- the node --- */

typedef struct cores {
    hwloc_topology_t topology; /* allowed processors only */
    hwloc_bitmap_t allowed;
    int n;
    int32_t *numa;
} cores;

static bool find_cores(cores *c) {
    c->n = hwloc_get_nbobjs_by_type(c->topology, HWLOC_OBJ_CORE);
    c->numa = c->n > 0 ? calloc((size_t)c->n, sizeof *c->numa) : NULL;
    for (int i = 0; i < c->n && c->numa; i++) {
        const hwloc_obj_t core = hwloc_get_obj_by_type(c->topology, HWLOC_OBJ_CORE, (unsigned)i);
        c->numa[i] = core->nodeset ? hwloc_bitmap_first(core->nodeset) : 0;
    }
    return c->numa != NULL;
}

static bool open_cores(cores *c) {
    *c = (cores){.allowed = hwloc_bitmap_alloc()};
    return c->allowed && hwloc_topology_init(&c->topology) == 0 && hwloc_topology_load(c->topology) == 0 &&
           hwloc_topology_is_thissystem(c->topology) &&
           hwloc_get_cpubind(c->topology, c->allowed, HWLOC_CPUBIND_THREAD) == 0 &&
           hwloc_topology_restrict(c->topology, c->allowed, 0) == 0 && find_cores(c);
}

static void close_cores(cores *c) {
    if (c->topology) hwloc_topology_destroy(c->topology);
    hwloc_bitmap_free(c->allowed);
    free(c->numa);
}

/* All hardware threads of the share's cores: one computes, what reads ahead may use the other. */
static void bind_to(const cores *c, hp_share s) {
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (int i = s.first; set && i < s.first + s.count; i++)
        hwloc_bitmap_or(set, set, hwloc_get_obj_by_type(c->topology, HWLOC_OBJ_CORE, (unsigned)i)->cpuset);
    if (set) hwloc_set_cpubind(c->topology, set, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(set);
}

/* --- ranks --- */

/* A number equal on ranks that share processors of a node. Names of nodes do not help: every container has
 * its own. */
static double pool_of(const cores *c) {
    char boot[64] = "", *set = NULL;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f && !fgets(boot, sizeof boot, f)) boot[0] = '\0';
    if (f) fclose(f);
    uint64_t hash = hp_hash64(boot, strlen(boot), 0);
    if (c->numa && hwloc_bitmap_asprintf(&set, c->allowed) >= 0) hash = hp_hash64(set, strlen(set), hash);
    free(set);
    return (double)(hash & 0xffffffffffff); /* exact in a double */
}

/* Which of how many ranks of its pool this one is. */
static hp_status find_peers(hp_comm *comm, double pool, int *index, int *ranks, hp_error *err) {
    double *all = calloc((size_t)comm->size, sizeof *all);
    HP_ASSERT(all);
    const hp_status s = hp_comm_share(comm, pool, all, "the other ranks' processors", err);
    for (int r = *index = *ranks = 0; r < comm->size; r++)
        if (all[r] == pool) *index += r < comm->rank, ++*ranks;
    free(all);
    return s;
}

hp_status hp_bind_rank(hp_comm *comm, int threads, bool bind, hp_bound_cores *bound, hp_error *err) {
    cores c;
    hp_here here;
    int index, ranks;
    const bool open = open_cores(&c);
    /* with the affinity as it is; a quota may allow fewer cores than it */
    const int usable = hp_here_read(&hp_here_system, &here, NULL) == HP_OK ? here.cores : 1;
    const hp_status s = find_peers(comm, pool_of(&c), &index, &ranks, err);
    *bound = (hp_bound_cores){.cores = ranks > 0 && usable > ranks ? usable / ranks : 1,
                              .crowded = (int64_t)ranks * threads > usable};
    if (s == HP_OK && open && bind && (int64_t)ranks * threads <= c.n)
        bind_to(&c, hp_bind_share(c.numa, c.n, index, ranks, threads));
    close_cores(&c);
    return s;
}
