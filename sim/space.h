/* space.h - every strategy for a number of devices: dp x stages x schedule x micro-batches x chunks x
 * recompute. */
#ifndef HP_SIM_SPACE_H
#define HP_SIM_SPACE_H

#include "plan/program.h"

typedef struct hp_space {
    const hp_graph *graph;
    hp_mode mode;
    int64_t batch;
    int n_devices;
    bool small_groups; /* the points that make batch-norm groups smaller for nothing but memory, instead of
                          all others */
} hp_space;

/* All points with dp * stages = n_devices, in a fixed order, illegal ones included (they are rejected with
 * reasons): the micro-batch counts are all divisors of a replica's batch, and a few powers of two that may
 * not divide. Accumulating gradients on one stage (micro > 1) makes the groups of a network with batch norm
 * smaller, which changes what it learns; such points are a list of their own. Different spellings of one
 * program appear once. Returns how many; the array lives in `arena`.
 */
int hp_space_list(hp_arena *arena, const hp_space *space, hp_strategy **list);

/* Tasks of the lowered program, roughly: what an evaluation costs. */
int64_t hp_space_tasks(const hp_space *space, const hp_strategy *s);

#endif
