/* random_deployed.h - random networks with the operators that only inference has, and random strategies for
 * them, including strips.
 *
 * The operators are resizing, products, scales, softmax, gates of a pooled vector, and grouped transposed
 * convolutions. Some tensors are read twice, again later, or across the whole network. */
#ifndef HP_TESTS_RANDOM_DEPLOYED_H
#define HP_TESTS_RANDOM_DEPLOYED_H

#include "networks/deploy/deploy.h"
#include "tests/support/plan/random_net.h"

/* Only dense blocks, across units: operators that training has as well. */
hp_graph *random_dense_net(hp_arena *arena, uint64_t seed, int n_block);

/* As random_net, with the blocks above. */
hp_graph *random_infer_net(hp_arena *arena, uint64_t seed, int n_block);

/* Tiles, stages, replicas, strips, for a network in its precision; *batch: one that the strategy accepts. */
hp_strategy random_infer_strategy(dice *d, const hp_graph *g, int max_ranks, int64_t *batch);
hp_graph *random_deployed(hp_arena *arena, const hp_graph *g, int prec);

#endif
