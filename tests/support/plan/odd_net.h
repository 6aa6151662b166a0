/* odd_net.h - random chains of windows that no sensible network has: gaps, dilation, more padding than
 * window, transposed windows that do not meet, incomplete pools; here and there a sum of two of a kind. */
#ifndef HP_TESTS_ODD_NET_H
#define HP_TESTS_ODD_NET_H

#include "networks/graph/shape.h"
#include "tests/support/plan/random_net.h"

hp_graph *odd_net(hp_arena *arena, uint64_t seed);

/* One of either kind. */
hp_graph *any_net(hp_arena *arena, uint64_t seed, int n_block);

#endif
