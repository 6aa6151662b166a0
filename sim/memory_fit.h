/* memory_fit.h - does a program's planned memory fit: per device, and on CPU machines per node, whose RAM is
 * shared. */
#ifndef HP_SIM_MEMORY_FIT_H
#define HP_SIM_MEMORY_FIT_H

#include "plan/machine.h"
#include "plan/strategy.h"

typedef struct hp_memory_limit {
    int64_t rank_bytes; /* of one rank */
    int64_t node_bytes; /* of all ranks of a node together; 0 = no such limit */
} hp_memory_limit;

/* user_limit 0: the machine's own. */
hp_memory_limit hp_memory_limit_of(const hp_machine *m, int64_t user_limit);

/* E-MEM with the limiting number when some rank or node does not fit; the fix is left to who knows
 * alternatives. */
bool hp_memory_fits(const hp_memory_limit *limit, const hp_machine *m, const int64_t *by_role, int n_role,
                    int dp, hp_reject *why);

#endif
