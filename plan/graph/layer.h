/* layer.h - kinds of layers that several parts treat alike. */
#ifndef HP_LAYER_H
#define HP_LAYER_H

#include "plan/graph/graph.h"

/* Is it a product of its input with a matrix of weights? */
static inline bool hp_layer_is_matrix(const hp_layer *l) {
    return l->op == HP_CONV || l->op == HP_CONVT || l->op == HP_LINEAR;
}

#endif
