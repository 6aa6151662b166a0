/* shape.h - output shapes from input shapes, one rule per operator; used by everything that builds graphs. */
#ifndef HP_SHAPE_H
#define HP_SHAPE_H

#include "networks/graph/graph.h"

/* Output shape (h, w, c) of a layer whose inputs and attributes are set. out_c: output channels of conv and
 * linear. Errors: HP_EPLAN if a window does not fit into the image; HP_EINTERNAL if the inputs' shapes do not
 * match. */
hp_status hp_layer_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err);

/* Sets g->unit_first and g->n_unit from the layers' units, which must not decrease and have no gap. */
void hp_graph_index_units(hp_arena *arena, hp_graph *g);

#endif
