/* sim_memory_fit.h - does a program's planned memory fit: per device, and on CPU machines per node, whose RAM
 * is shared? */
#ifndef HP_SIM_MEMORY_FIT_H
#define HP_SIM_MEMORY_FIT_H

#include "machines/machine.h"
#include "plan/strategy/strategy.h"

typedef struct hp_memory_limit {
    /* bytes per rank: the device's divided by its clients, unless the user gave a limit; for the largest
     * class */
    int64_t rank_bytes;
    int64_t class_bytes[1 + HP_MORE_CLASSES]; /* likewise, per rank on each class */
    int64_t node_bytes; /* bytes of all ranks on a node; 0: no such limit. CPU devices share the node's
                         * memory */
} hp_memory_limit;
/* user_limit: bytes per rank; 0: none given. clients: ranks per device; each has a context, unless their
 * demands include it (eager). */
hp_memory_limit hp_memory_limit_of(const hp_machine *m, int64_t user_limit, int clients, bool eager);

/* Number of ranks, and their needs. */
typedef struct hp_memory_demand {
    const int64_t *by_role;
    int n_role, dp, clients; /* dp: number of data replicas, including clients */
    const int32_t *seat;     /* hp_placement's */
} hp_memory_demand;

/* If false, `why` gets E-MEM and the limiting number. */
bool hp_memory_fits(const hp_memory_limit *limit, const hp_machine *m, const hp_memory_demand *d,
                    hp_reject *why);
/* The same for one number: the lower bound of a rank at this position. */
bool hp_memory_refuse(hp_reject *why, const hp_memory_limit *limit, int position, int positions,
                      double bytes);

#endif
