/* graph_resize.h - adapts a network read from a file to another image size.
 *
 * Built-in networks are rebuilt (hp_net_build); an imported one only has the numbers for its own size.
 * Windows with an explicit output size, pads and resizes keep their geometry per pixel. */
#ifndef HP_GRAPH_RESIZE_H
#define HP_GRAPH_RESIZE_H

#include "networks/graph/graph.h"

/* g must not be deployed. A linear layer over a map gets weights of another size. The result lives in `arena`
 * and shares names. Errors: HP_EPLAN (a window does not fit, or a resize factor gives no whole size),
 * HP_EINTERNAL (joined maps differ in size, because the new size does not suit the network's strides). */
hp_status hp_graph_resize(hp_arena *arena, const hp_graph *g, int image_h, int image_w, hp_graph **out,
                          hp_error *err);

#endif
