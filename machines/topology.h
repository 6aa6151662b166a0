/* topology.h - the node's cores, memories and caches as hwloc finds them, and those that this process may
 * use. */
#ifndef HP_TOPOLOGY_H
#define HP_TOPOLOGY_H

#include "base/status.h"

#include <stdint.h>

typedef struct hp_topology_facts {
    int32_t cores;          /* cores of the node */
    int32_t allowed_cores;  /* cores in the control group's cpuset */
    int32_t bound_cores;    /* allowed cores in the process's affinity */
    int32_t bound_threads;  /* hardware threads in the process's affinity */
    int32_t numa_nodes;     /* NUMA nodes with a bound core */
    int64_t cache_bytes[3]; /* L1 (data), L2, L3 of the first bound core; 0: none, or unknown */
} hp_topology_facts;

/* synthetic: hwloc's description of another node, entirely allowed; NULL: this node. Errors: HP_EUNAVAIL. */
hp_status hp_topology_read(const char *synthetic, hp_topology_facts *facts, hp_error *err);

#endif
