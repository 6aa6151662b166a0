/* topology.h - the node's cores, memories and caches as hwloc finds them, and which of them this process may use. */
#ifndef HP_TOPOLOGY_H
#define HP_TOPOLOGY_H

#include "base/status.h"

#include <stdint.h>

typedef struct hp_topology_facts {
    int32_t cores;          /* of the node */
    int32_t allowed_cores;  /* that the control group's cpuset leaves */
    int32_t bound_cores;    /* of those, that the process's affinity leaves */
    int32_t bound_threads;  /* hardware threads likewise */
    int32_t numa_nodes;     /* that have one of the bound cores */
    int64_t cache_bytes[3]; /* L1 (data), L2, L3 of the first of them; 0: none, or unknown */
} hp_topology_facts;

/* synthetic: hwloc's description of another node, all of it allowed; NULL: this one. Errors: HP_EUNAVAIL. */
hp_status hp_topology_read(const char *synthetic, hp_topology_facts *facts, hp_error *err);

#endif
