/* summands.h - linear layers split over tensor-parallel ranks (Shoeybi et al. 2019, section 3).
 *
 * Between a column layer (HP_TP_COLUMN) and a row layer (HP_TP_ROW), each rank holds some of the channels. A
 * row layer multiplies them with its rows of the weights; the ranks' products are summands of the single-rank
 * result. In a network for n ranks, a row layer's output has n blocks of channels, one per summand, and the
 * layer that reads it (HP_SUM) adds them up. Nothing else differs, so all ids are those of the network for
 * one rank.
 *
 * A vocabulary is split the same way. A rank's rows of an embedding table (a row layer) make a summand that
 * is zero for ids of other ranks. A head that is a column layer gives each rank the logits of its rows, which
 * the loss combines into one softmax (HP_TASK_MAXSUM). */
#ifndef HP_SUMMANDS_H
#define HP_SUMMANDS_H

#include "networks/graph/graph.h"

/* Sets tp_unit of all tensors: whether tensor-parallel ranks split the channels, and in which units; heads
 * stay whole. */
void hp_graph_mark_split(hp_graph *g);

/* Number of ranks that the network is built for; 0 if no layer can be split. */
int hp_graph_summands(const hp_graph *g);

/* Returns g for n ranks that split its linear layers. Layers and tensors are copies, the rest is shared with
 * g. Lives in `arena`. */
hp_graph *hp_graph_with_summands(hp_arena *arena, const hp_graph *g, int n);

/* A summand of a row layer: channels of its input (for an embedding, rows of its table) and channels of its
 * output. */
typedef struct hp_summand {
    int32_t in_lo, in_hi, out_lo, out_hi;
} hp_summand;
/* The k-th. */
hp_summand hp_summand_at(const hp_graph *g, const hp_layer *l, int k);
/* Number of summands in the layer's output. */
static inline int hp_summands(const hp_layer *l) {
    return l->summands > 0 ? l->summands : 1;
}
/* Does the kernel add up whole blocks, each as wide as its output? */
static inline bool hp_layer_adds_blocks(const hp_layer *l) {
    return l->op == HP_SUM && hp_summands(l) > 1;
}

#endif
