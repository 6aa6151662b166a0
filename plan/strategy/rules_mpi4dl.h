/* rules_mpi4dl.h - which strategies MPI4DL v0.6 (OSU-Nowlab/MPI4DL, the code of GEMS and Hy-Fi) lets
 * start.
 *
 * The verdicts are those of its assertions, and of what it has no words for. A verdict is not a promise:
 * Hy-Fi's published layout of 12 GPUs (6 partitions, the first two of 4 tiles, both replicas) passes the
 * check of 2 * 4 ranks and would then build a process group that holds the ranks of its second partition
 * twice; with several data replicas the peers of sends are computed without the replica's offset. Such
 * failures after the checks are not verdicts here. */
#ifndef HP_RULES_MPI4DL_H
#define HP_RULES_MPI4DL_H

#include "plan/strategy/strategy.h"

/* For a strategy that hplan's own rules allow (hp_strategy_legal). Refusals have the code E-MPI4DL. */
bool hp_mpi4dl_allows(const hp_strategy *s, const hp_graph *g, hp_reject *why);

#endif
