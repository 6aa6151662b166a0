/* topology.c - reduces hwloc's tree (hwloc 2 manual, "Terms and Definitions") to a few figures. A core counts
 * if one of its hardware threads may be used. */
#include "machines/topology.h"

#include <errno.h>
#include <hwloc.h>
#include <stdbool.h>
#include <string.h>

static hp_status load(const char *synthetic, hwloc_topology_t *t, hp_error *err) {
    bool good = hwloc_topology_init(t) == 0;
    const bool made = good;
    if (good && synthetic) good = hwloc_topology_set_synthetic(*t, synthetic) == 0;
    if (good) good = hwloc_topology_set_flags(*t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0;
    if (good && hwloc_topology_load(*t) == 0) return HP_OK;
    hp_fail(err, HP_EUNAVAIL,
            "hwloc finds no processors: %s; describe the machine for --machine (docs/machines.md)",
            strerror(errno));
    if (made) hwloc_topology_destroy(*t);
    return HP_EUNAVAIL;
}

/* Number of objects of a type that contain a processor of `set`. */
static int32_t count(hwloc_topology_t t, hwloc_obj_type_t type, hwloc_const_bitmap_t set) {
    int32_t n = 0;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, type, o));)
        n += hwloc_bitmap_intersects(o->cpuset, set) != 0;
    return n;
}

static int32_t count_cores(hwloc_topology_t t, hwloc_const_bitmap_t set) {
    const int32_t cores = count(t, HWLOC_OBJ_CORE, set);
    return cores ? cores : hwloc_bitmap_weight(set); /* some virtual machines have processors but no cores */
}

static void read_caches(hwloc_topology_t t, hwloc_const_bitmap_t set, int64_t bytes[3]) {
    static const hwloc_obj_type_t LEVELS[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE};
    const hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(t, (unsigned)hwloc_bitmap_first(set));
    for (int i = 0; i < 3; i++) {
        const hwloc_obj_t cache = pu ? hwloc_get_ancestor_obj_by_type(t, LEVELS[i], pu) : NULL;
        bytes[i] = cache ? (int64_t)cache->attr->cache.size : 0;
    }
}

static void read_facts(hwloc_topology_t t, hwloc_bitmap_t set, hp_topology_facts *f) {
    f->cores = count_cores(t, hwloc_topology_get_complete_cpuset(t));
    hwloc_bitmap_copy(set, hwloc_topology_get_allowed_cpuset(t));
    f->allowed_cores = count_cores(t, set);
    hwloc_bitmap_t affinity = hwloc_bitmap_alloc();
    if (affinity && hwloc_topology_is_thissystem(t) &&
        hwloc_get_cpubind(t, affinity, HWLOC_CPUBIND_PROCESS) == 0)
        hwloc_bitmap_and(set, set, affinity);
    hwloc_bitmap_free(affinity);
    f->bound_cores = count_cores(t, set);
    f->bound_threads = hwloc_bitmap_weight(set);
    f->numa_nodes = count(t, HWLOC_OBJ_NUMANODE, set);
    read_caches(t, set, f->cache_bytes);
}

hp_status hp_topology_read(const char *synthetic, hp_topology_facts *facts, hp_error *err) {
    hwloc_topology_t t;
    HP_TRY(load(synthetic, &t, err));
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    *facts = (hp_topology_facts){0};
    if (set) read_facts(t, set, facts);
    hwloc_bitmap_free(set);
    hwloc_topology_destroy(t);
    return facts->bound_threads > 0 ? HP_OK : hp_fail(err, HP_EUNAVAIL, "hwloc finds no usable processor");
}
