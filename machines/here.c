/* here.c - applies limits one after another, from the node's hardware to the batch system's share, and names
 * the last one that lowered the result. */
#include "machines/here.h"

#include "machines/cgroup.h"
#include "machines/topology.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const hp_here_source hp_here_system = {.root = ""};

/* --- processors --- */

static void limit_cores(hp_here *h, double cores, const char *by) {
    const int32_t whole = cores < 1 ? 1 : (int32_t)cores; /* a fraction of a core is slow, but still a core */
    if (whole >= h->cores) return;
    h->cores = whole;
    snprintf(h->cores_limit, sizeof h->cores_limit, "%s", by);
}

/* A number from the environment; 0: none. */
static int64_t environment(const char *name) {
    const char *text = getenv(name);
    const int64_t value = text ? strtoll(text, NULL, 10) : 0;
    return value > 0 ? value : 0;
}

static void apply_slurm_cores(hp_here *h) {
    /* Slurm's count for the job on this node, otherwise for the task. It counts cores or hardware threads,
     * depending on its configuration; a core is at least one of either. */
    static const char *const NAMES[] = {"SLURM_CPUS_ON_NODE", "SLURM_CPUS_PER_TASK"};
    for (int i = 0; i < 2; i++) {
        const int64_t cpus = environment(NAMES[i]);
        char by[64];
        snprintf(by, sizeof by, "%s=%lld", NAMES[i], (long long)cpus);
        if (cpus) limit_cores(h, (double)cpus, by);
        if (cpus) return;
    }
}

static void apply_cores(hp_here *h, const hp_topology_facts *t, const hp_cgroup *group) {
    char by[640];
    h->cores = h->node_cores = t->cores;
    limit_cores(h, t->allowed_cores, "the control group's cpuset");
    limit_cores(h, t->bound_cores, "the affinity of this process");
    snprintf(by, sizeof by, "a quota of %.3g cores (%s)", group->cpus, group->cpus_file);
    if (isfinite(group->cpus)) limit_cores(h, group->cpus, by);
    apply_slurm_cores(h);
}

/* --- memory --- */

static void limit_memory(hp_here *h, int64_t bytes, const char *by) {
    if (bytes >= h->memory_bytes) return;
    h->memory_bytes = bytes;
    snprintf(h->memory_limit, sizeof h->memory_limit, "%s", by);
}

static void apply_slurm_memory(hp_here *h) {
    static const int64_t MEBI = 1 << 20; /* Slurm's megabytes */
    const int64_t node = environment("SLURM_MEM_PER_NODE"), cpu = environment("SLURM_MEM_PER_CPU"),
                  cpus = node ? 1 : environment("SLURM_CPUS_ON_NODE");
    const int64_t each = node ? node : cpu;
    if (each == 0 || cpus == 0 || each > INT64_MAX / MEBI / cpus) return;
    limit_memory(h, each * cpus * MEBI, node ? "SLURM_MEM_PER_NODE" : "SLURM_MEM_PER_CPU");
}

/* A row of /proc/meminfo, in bytes; 0: unknown. */
static int64_t read_meminfo(const char *root, const char *key) {
    char path[1100], line[256];
    long long kib = 0;
    snprintf(path, sizeof path, "%.1024s/proc/meminfo", root);
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    const size_t n = strlen(key);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, key, n) == 0 && line[n] == ':') kib = strtoll(line + n + 1, NULL, 10);
    fclose(f);
    return kib * 1024;
}

static void apply_memory(hp_here *h, const char *root, const hp_cgroup *group) {
    const int64_t available = read_meminfo(root, "MemAvailable");
    h->memory_bytes = h->node_memory_bytes = read_meminfo(root, "MemTotal");
    limit_memory(h, group->memory_bytes, group->memory_file);
    apply_slurm_memory(h);
    h->free_bytes = available ? available : h->memory_bytes;
    if (group->memory_free_bytes < h->free_bytes) h->free_bytes = group->memory_free_bytes;
    if (h->memory_bytes < h->free_bytes) h->free_bytes = h->memory_bytes;
}

hp_status hp_here_read(const hp_here_source *source, hp_here *here, hp_error *err) {
    hp_topology_facts t;
    hp_cgroup group;
    HP_TRY(hp_topology_read(source->topology, &t, err));
    hp_cgroup_read(source->root, &group);
    *here = (hp_here){.threads = t.bound_threads,
                      .numa_nodes = t.numa_nodes,
                      .l1_bytes = t.cache_bytes[0],
                      .l2_bytes = t.cache_bytes[1],
                      .l3_bytes = t.cache_bytes[2]};
    apply_cores(here, &t, &group);
    apply_memory(here, source->root, &group);
    if (here->memory_bytes > 0) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL,
                   "/proc/meminfo does not say how much memory there is; describe the machine in a JSON file "
                   "for --machine");
}
