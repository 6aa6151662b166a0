/* fuse.h - the pass that joins layers which one kernel computes. */
#ifndef HP_FUSE_H
#define HP_FUSE_H

#include "plan/graph/graph.h"

/* A new graph in which batch norm, the addition that alone reads it and the activation that alone reads that
 * are one HP_BN layer, and an addition with its activation one HP_ADD layer. The fused BN has the name of the
 * norm and the other summand, which an earlier layer produces, as in[1]. Nothing is fused across units.
 * Shares names and parameters' text with `g`; all else is new in `arena`. */
hp_graph *hp_graph_fuse(hp_arena *arena, const hp_graph *g);

#endif
