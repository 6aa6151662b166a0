/* sequence.h - tensor parallelism (`tp=`) and context parallelism (`seq=`) of transformers: the ranks of a
 * stage split each tensor by rows (tokens) or by channels (heads).
 *
 * tp: channels are split between a column and a row linear layer, rows everywhere else (Shoeybi et al. 2019,
 * section 3; with sequence parallelism: Korthikanti et al. 2022, section 4.2.2). seq: rows are split
 * everywhere. With `a2a`, attention's output is split by heads instead (Ulysses, Jacobs et al. 2023, section
 * 3). With `ring` each rank's rows attend to keys and values that come from all others (Liu et al. 2023). */
#ifndef HP_SEQUENCE_H
#define HP_SEQUENCE_H

#include "plan/strategy/strategy.h"

/* The fewest heads of any attention; 0: there is none. */
int hp_fewest_heads(const hp_graph *g);

/* The network as ranks that add up `tp` summands run it: a row layer's output has `tp` blocks of channels,
 * one per rank (networks/graph/summands.h). Returns g itself where nothing changes. Lives in `arena`. */
const hp_graph *hp_strategy_graph(hp_arena *arena, const hp_graph *g, const hp_strategy *s);

#endif
