/* depths.h - how deep strips of the image may go: units whose end is worth trying. */
#ifndef HP_DEPTHS_H
#define HP_DEPTHS_H

#include "networks/graph/graph.h"

enum { HP_DEPTHS = 6 };

/* Numbers of units as `deep=` takes them: 0, all; then, the deepest first, up to and with each unit that
 * makes the map smaller than all before it by a factor of four: what is put together after such a unit is
 * small. Returns how many. */
int hp_graph_depths(const hp_graph *g, int32_t depth[HP_DEPTHS]);

#endif
