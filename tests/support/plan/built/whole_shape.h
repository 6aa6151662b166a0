/* whole_shape.h - a layer's shape between its whole tensors. */
#ifndef HP_TESTS_WHOLE_SHAPE_H
#define HP_TESTS_WHOLE_SHAPE_H

#include "plan/tiles/tile.h"

/* The whole layer on n samples. */
static inline hp_shape whole_shape(const hp_graph *g, int layer, int64_t samples) {
    const hp_layer *l = &g->layer[layer];
    const hp_box in = hp_box_whole(g, l->n_in > 0 ? l->in[0] : l->out, samples),
                 out = hp_box_whole(g, l->out, samples);
    return hp_shape_between(g, layer, &in, &out);
}

#endif
