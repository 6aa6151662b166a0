/* run_bind.h - which cores a rank computes on. The ranks that a launcher left on the same processors divide
 * them: every rank gets a run of neighbouring cores, so that ranks do not move onto each other's caches. A
 * launcher that has bound the ranks itself (srun) is left alone, as no two of them have the same
 * processors. */
#ifndef HP_RUN_BIND_H
#define HP_RUN_BIND_H

#include "exec/comm/comm.h"

#include <stdbool.h>

typedef struct hp_share {
    int first, count; /* cores, in topology order */
} hp_share;

/* The share of rank `index` of `ranks`: disjoint from the others', at least `threads` cores, and of one NUMA
 * node where its part of one is that large. numa: of each core, cores of a node in a row. ranks * threads <=
 * cores. */
hp_share hp_bind_share(const int32_t *numa, int cores, int index, int ranks, int threads);

typedef struct hp_bound_cores { /* what a rank has of its node's processors */
    int cores;                  /* its part of those that all may use, at least 1 */
    bool crowded;               /* ranks share cores and must give them away while they wait */
} hp_bound_cores;

/* Binds this thread, and those it starts from now on, to its share, if `bind` and if all ranks' threads have
 * a core. Collective: over all ranks. Errors: HP_ESTALL. */
hp_status hp_bind_rank(hp_comm *comm, int threads, bool bind, hp_bound_cores *bound, hp_error *err);

#endif
