/* summands.h - linear layers that tensor-parallel ranks share (Shoeybi et al. 2019, section 3).
 *
 * Between a column layer (HP_TP_COLUMN) and a row layer (HP_TP_ROW) each rank has some of the channels; a row layer
 * multiplies them with its rows of the weights, and the ranks' products are summands of what one rank would make. In a
 * network for n ranks a row layer's output has n blocks of channels, a summand each, and the layer that reads it (HP_SUM)
 * adds them up. Nothing else differs, so that all ids are those of the network for one rank.
 *
 * A vocabulary is shared the same way: a rank's rows of the table of an embedding (a row layer) make a summand that is zero
 * for ids of other ranks, and a head that is a column layer leaves each rank the logits of its rows, of
 * which the loss then makes one softmax (HP_TASK_MAXSUM). */
#ifndef HP_SUMMANDS_H
#define HP_SUMMANDS_H

#include "networks/graph/graph.h"

/* Sets tp_unit of all tensors: whose channels such ranks split, and in which units; heads stay whole. */
void hp_graph_mark_split(hp_graph *g);

/* For how many ranks it is; 0: it has no layers that ranks could share. */
int hp_graph_summands(const hp_graph *g);

/* g for n ranks that share its linear layers: its layers and tensors of its own, all else g's. Lives in `arena`. */
hp_graph *hp_graph_with_summands(hp_arena *arena, const hp_graph *g, int n);

/* A summand of a row layer: channels of its input, of an embedding rows of its table, and channels of its output. */
typedef struct hp_summand {
    int32_t in_lo, in_hi, out_lo, out_hi;
} hp_summand;
/* The k-th. */
hp_summand hp_summand_at(const hp_graph *g, const hp_layer *l, int k);
/* How many the layer's output has. */
static inline int hp_summands(const hp_layer *l) {
    return l->summands > 0 ? l->summands : 1;
}

#endif
