/* sequence.h - tensor parallelism (`tp=`) and context parallelism (`seq=`) of transformers: ranks of a stage that split, tensor by
 * tensor, either rows (tokens) or channels (heads).
 *
 * tp: between a column and a row linear layer the channels are split, everywhere else the rows (Shoeybi et al. 2019,
 * section 3; sequence parallelism beside it: Korthikanti et al. 2022, section 4.2.2). seq: rows are split everywhere, with
 * `a2a` but for what attention puts out, which is split by heads (Ulysses, Jacobs et al. 2023, section 3); with `ring` each
 * rank's rows attend to keys and values that come from all others (Liu et al. 2023). */
#ifndef HP_SEQUENCE_H
#define HP_SEQUENCE_H

#include "plan/strategy/strategy.h"

/* The fewest heads of any attention; 0: there is none. */
int hp_fewest_heads(const hp_graph *g);

/* The network as ranks that add up `tp` summands run it: what a row layer makes has as many blocks of channels, one of each rank's
 * (networks/graph/summands.h). g itself where it is just that. Lives in `arena`. */
const hp_graph *hp_strategy_graph(hp_arena *arena, const hp_graph *g, const hp_strategy *s);

#endif
