/* exact_activation.h - activations by their definitions, in float64. */
#ifndef HP_TESTS_EXACT_ACTIVATION_H
#define HP_TESTS_EXACT_ACTIVATION_H

#include "networks/graph/graph.h"

/* The activation of layer `l` at v. */
double exact_activation(const hp_layer *l, double v);

#endif
