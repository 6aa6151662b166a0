/* alike.h - finds layers that differ only in their place in the network, such as a transformer's blocks. */
#ifndef HP_ALIKE_H
#define HP_ALIKE_H

#include "networks/graph/graph.h"

/* Per layer, the first layer with the same operator, sizes and parameter shapes (possibly itself): tasks of
 * both cost the same. Lives in `arena`. */
int32_t *hp_graph_alike(hp_arena *arena, const hp_graph *g);

#endif
