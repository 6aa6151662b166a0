/* fuse.h - fuses layers that one kernel computes. */
#ifndef HP_FUSE_H
#define HP_FUSE_H

#include "networks/graph/graph.h"

/* Returns a new graph. A batch norm, the addition that is its only reader and the activation that is the
 * addition's only reader become one HP_BN layer. An addition and its activation become one HP_ADD layer. A
 * fused BN keeps the norm's name; its in[1] is the other summand, which an earlier layer produces. Nothing is
 * fused across units. Shares names and parameters' text with `g`; the rest is allocated in `arena`. */
hp_graph *hp_graph_fuse(hp_arena *arena, const hp_graph *g);

#endif
