/* resize.h - a network that was read from a file, for images of another size.
 *
 * Built-in networks are built anew (hp_net_build); one that was read has only the numbers of its own size.
 * Windows that count their outputs, pads and resizes keep what they do per pixel. */
#ifndef HP_GRAPH_RESIZE_H
#define HP_GRAPH_RESIZE_H

#include "plan/graph/graph.h"

/* g is not deployed. A linear layer over a map gets weights of another size. Lives in `arena`, shares names.
 * Errors: HP_EPLAN (a window does not fit, a resize does not come out even), HP_EINTERNAL (maps that meet
 * differ: take a size that is the network's by a multiple of its strides). */
hp_status hp_graph_resize(hp_arena *arena, const hp_graph *g, int image_h, int image_w, hp_graph **out,
                          hp_error *err);

#endif
