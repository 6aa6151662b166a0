/* sim_memory_fit.h - does a program's planned memory fit: per device, and on CPU machines per node, whose RAM is
 * shared. */
#ifndef HP_SIM_MEMORY_FIT_H
#define HP_SIM_MEMORY_FIT_H

#include "machines/machine.h"
#include "plan/strategy/strategy.h"

typedef struct hp_memory_limit {
    int64_t
        rank_bytes; /* of one rank: the device's over its clients, unless the user gave a limit; of the largest class */
    int64_t class_bytes[1 + HP_MORE_CLASSES]; /* likewise, of a rank on each class */
    int64_t node_bytes; /* of all ranks on a node, 0 = no such limit: CPU devices share the node's memory */
} hp_memory_limit;
/* user_limit: bytes of one rank, 0 = none given. clients: ranks on a device; several have a context each,
 * unless their demands count it (eager). */
hp_memory_limit hp_memory_limit_of(const hp_machine *m, int64_t user_limit, int clients, bool eager);

/* Ranks and what they need. */
typedef struct hp_memory_demand {
    const int64_t *by_role;
    int n_role, dp, clients; /* dp: data replicas, clients included */
    const int32_t *seat;     /* hp_placement's */
} hp_memory_demand;

/* False: why gets E-MEM, the limiting number. */
bool hp_memory_fits(const hp_memory_limit *limit, const hp_machine *m, const hp_memory_demand *d,
                    hp_reject *why);
/* The same of one number: what a rank of this position needs at least. */
bool hp_memory_refuse(hp_reject *why, const hp_memory_limit *limit, int position, int positions,
                      double bytes);

#endif
