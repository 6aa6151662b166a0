/* alike.h - layers that differ in nothing but their place in the network: the blocks of a transformer have the same. */
#ifndef HP_ALIKE_H
#define HP_ALIKE_H

#include "networks/graph/graph.h"

/* Per layer the first that is like it, of the same operator, sizes and parameters' shapes, maybe itself: what a task of
 * either takes is the same. Lives in `arena`. */
int32_t *hp_graph_alike(hp_arena *arena, const hp_graph *g);

#endif
