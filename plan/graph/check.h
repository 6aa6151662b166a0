/* check.h - is this a graph that the rest may trust? For graphs that come from strangers. */
#ifndef HP_GRAPH_CHECK_H
#define HP_GRAPH_CHECK_H

#include "plan/graph/graph.h"

/* Numbers in range, layers after what they read, names unique, parameters of the shapes that their layers
 * need, output shapes as hp_layer_shape says, units without gaps, sizes that can be added up in 63 bits. Of
 * graphs as built or imported, not deployed. Errors: HP_EDATA naming the layer. */
hp_status hp_graph_check(const hp_graph *g, hp_error *err);

#endif
