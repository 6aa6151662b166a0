/* axis_sync.h - the strategy's key `sync`: how the ranks that hold the same parameters come to the same
 * update.
 *
 * `allreduce`: each adds up all gradients and updates all parameters. `ps`: each bucket of parameters has a
 * server among these ranks, which adds up its gradients, updates it and sends it to the others (Li et al.,
 * OSDI 2014); `ps` all members serve in turn, `ps:2` the first two do. `local:8`: each replica updates its
 * own parameters, and every eight steps they become the mean of all (Stich, ICLR 2019): not what one rank
 * computes, unless in every step. */
#ifndef HP_AXIS_SYNC_H
#define HP_AXIS_SYNC_H

#include "plan/strategy/strategy.h"

/* The member of a group of `size` that serves its k-th bucket; -1: none does. */
int hp_sync_server(const hp_strategy *s, int size, int k);

#endif
