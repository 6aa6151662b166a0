/* random_deployed.h - random networks with the operators that only inference has (resizing, products, scales,
 * softmax, gates of a pooled vector, grouped transposed convolutions) and with tensors that are read twice,
 * later again, or across the whole network; and random strategies for them, strips among them. */
#ifndef HP_TESTS_RANDOM_DEPLOYED_H
#define HP_TESTS_RANDOM_DEPLOYED_H

#include "networks/graph/deploy.h"
#include "tests/support/plan/random_net.h"

/* Of dense blocks alone, across units: operators that training has too. */
hp_graph *random_dense_net(hp_arena *arena, uint64_t seed, int n_block);

/* As random_net, of the blocks above. */
hp_graph *random_infer_net(hp_arena *arena, uint64_t seed, int n_block);

/* Tiles, stages, replicas, strips, for a network in its precision; *batch is one that they take. */
hp_strategy random_infer_strategy(dice *d, const hp_graph *g, int max_ranks, int64_t *batch);
hp_graph *random_deployed(hp_arena *arena, const hp_graph *g, int prec);

#endif
