/* fuse.h - fuses layers that one kernel computes. */
#ifndef HP_FUSE_H
#define HP_FUSE_H

#include "networks/graph/graph.h"

/* Returns a new graph in which a batch norm, the addition that alone reads it and the activation that alone
 * reads that are one HP_BN layer, and an addition with its activation is one HP_ADD layer. A fused BN has the
 * norm's name, and as in[1] the other summand, which an earlier layer produces. Nothing is fused across
 * units. Shares names and parameters' text with `g`; the rest is allocated in `arena`. */
hp_graph *hp_graph_fuse(hp_arena *arena, const hp_graph *g);

#endif
