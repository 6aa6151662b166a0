/* layers.h - layers of a network by name, for tests. */
#ifndef HP_TESTS_LAYERS_H
#define HP_TESTS_LAYERS_H

#include "networks/graph/graph.h"

/* Fails the test if no layer has the name. */
int layer_named(const hp_graph *g, const char *name);

#endif
