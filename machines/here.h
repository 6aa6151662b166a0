/* here.h - what this process may use of its node, and what limits it: processors by topology (hwloc),
 * affinity, control groups and Slurm; memory by the node, control groups and Slurm. */
#ifndef HP_HERE_H
#define HP_HERE_H

#include "base/status.h"

#include <stdint.h>

typedef struct hp_here {
    int32_t
        cores; /* cores that can be kept busy at a time, at least 1; one hardware thread per core computes */
    int32_t threads;                      /* hardware threads that the affinity allows */
    int32_t node_cores;                   /* cores of the whole node */
    int32_t bound_cores;                  /* cores that the affinity allows, regardless of quotas */
    int32_t numa_nodes;                   /* NUMA nodes with an allowed core */
    int64_t l1_bytes, l2_bytes, l3_bytes; /* data caches visible to a core; 0: none, or unknown */
    int64_t memory_bytes;                 /* the node's memory, or the smallest limit */
    int64_t node_memory_bytes;
    int64_t free_bytes;     /* currently free part of memory_bytes */
    char cores_limit[640];  /* what reduces the cores below the node's; "": nothing */
    char memory_limit[640]; /* likewise */
} hp_here;

/* Sources of the facts. */
typedef struct hp_here_source {
    const char *root;     /* contains /proc and the control groups; "": the system's own */
    const char *topology; /* hwloc's synthetic description ("pack:2 core:4 pu:2"); NULL: this node's */
} hp_here_source;

extern const hp_here_source hp_here_system;

/* Slurm's limits are read from the environment. Errors: HP_EUNAVAIL. */
hp_status hp_here_read(const hp_here_source *source, hp_here *here, hp_error *err);

#endif
