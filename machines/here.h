/* here.h - what this process may use of the node it runs on, and what limits it: processors by topology (hwloc),
 * affinity, control groups and Slurm; memory by the node, control groups and Slurm. */
#ifndef HP_HERE_H
#define HP_HERE_H

#include "base/status.h"

#include <stdint.h>

typedef struct hp_here {
    int32_t
        cores; /* that can be kept busy at a time; at least 1. Of a core's hardware threads one computes */
    int32_t threads;                      /* hardware threads that the affinity allows */
    int32_t node_cores;                   /* of the whole node */
    int32_t bound_cores;                  /* that the affinity allows: quotas do not count */
    int32_t numa_nodes;                   /* with an allowed core */
    int64_t l1_bytes, l2_bytes, l3_bytes; /* of the data cache that a core sees; 0: none, or unknown */
    int64_t memory_bytes;                 /* the node's, or the smallest limit */
    int64_t node_memory_bytes;
    int64_t free_bytes;     /* of memory_bytes, now */
    char cores_limit[640];  /* what allows fewer cores than the node has; "" nothing does */
    char memory_limit[640]; /* likewise */
} hp_here;

/* Where the facts come from. */
typedef struct hp_here_source {
    const char *root;     /* /proc and the control groups are below it; "": the system's own */
    const char *topology; /* hwloc's synthetic description ("pack:2 core:4 pu:2"); NULL: this node's */
} hp_here_source;

extern const hp_here_source hp_here_system;

/* Slurm's limits are those of the environment. Errors: HP_EUNAVAIL. */
hp_status hp_here_read(const hp_here_source *source, hp_here *here, hp_error *err);

#endif
