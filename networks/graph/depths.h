/* depths.h - how deep strips of the image may extend: units at whose end stopping is worth trying. */
#ifndef HP_DEPTHS_H
#define HP_DEPTHS_H

#include "networks/graph/graph.h"

enum { HP_DEPTHS = 6 };

/* Unit numbers for `deep=`: 0, all, and then, deepest first, every unit that shrinks the map by a factor of
 * four below all before it. The map assembled after such a unit is small. Returns their number. */
int hp_graph_depths(const hp_graph *g, int32_t depth[HP_DEPTHS]);

#endif
