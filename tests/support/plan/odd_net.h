/* odd_net.h - random chains of windows that no sensible network has: gaps, dilation, more padding than
 * window, transposed windows that do not touch, incomplete pools; occasionally a sum of two equal shapes. */
#ifndef HP_TESTS_ODD_NET_H
#define HP_TESTS_ODD_NET_H

#include "networks/graph/shape.h"
#include "tests/support/plan/random_net.h"

hp_graph *odd_net(hp_arena *arena, uint64_t seed);

/* A network of either kind. */
hp_graph *any_net(hp_arena *arena, uint64_t seed, int n_block);

#endif
