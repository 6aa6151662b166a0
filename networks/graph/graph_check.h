/* graph_check.h - validates a graph from an untrusted file, so that the rest of the program can rely on
 * it. */
#ifndef HP_GRAPH_CHECK_H
#define HP_GRAPH_CHECK_H

#include "networks/graph/graph.h"

/* Checks that numbers are in range, layers follow what they read, names are unique, parameters have the
 * shapes that their layers need, output shapes match hp_layer_shape, units have no gaps, and sizes add up
 * within 63 bits. For graphs as built or imported, not deployed. Errors: HP_EDATA naming the layer. */
hp_status hp_graph_check(const hp_graph *g, hp_error *err);

#endif
