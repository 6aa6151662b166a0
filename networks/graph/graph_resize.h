/* graph_resize.h - adapts a network that was read from a file to another image size.
 *
 * Built-in networks are built again (hp_net_build); an imported one has only the numbers of its own size.
 * Windows with an explicit output size, pads and resizes keep their geometry per pixel. */
#ifndef HP_GRAPH_RESIZE_H
#define HP_GRAPH_RESIZE_H

#include "networks/graph/graph.h"

/* g is not deployed. A linear layer over a map gets weights of another size. Lives in `arena`, shares names.
 * Errors: HP_EPLAN (a window does not fit, a resize factor gives no whole size), HP_EINTERNAL (maps that are
 * joined differ in size: the new size must be the network's times a multiple of its strides). */
hp_status hp_graph_resize(hp_arena *arena, const hp_graph *g, int image_h, int image_w, hp_graph **out,
                          hp_error *err);

#endif
