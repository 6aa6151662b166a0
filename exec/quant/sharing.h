/* sharing.h - tensors of a deployed graph that must have one quantisation, so that joining, copying and
 * taking maxima of bytes is exact. */
#ifndef HP_QUANT_SHARING_H
#define HP_QUANT_SHARING_H

#include "exec/data/weights/constants.h"
#include "exec/quant/histogram.h"
#include "plan/base/arena.h"

/* Per tensor the smallest one it shares with: quantised inputs and outputs of concat, max-pool, pad and
 * nearest resize, transitively. Lives in `arena`. */
int32_t *hp_sharing(hp_arena *arena, const hp_graph *g);

/* Does the layer only pass on elements of its inputs? The range of its output then has no say. */
bool hp_layer_passes(const hp_layer *l);

/* Per tensor of the int8 graph, the one of the float graph that it stands for: what the layer of the same
 * name makes, quant and dequant layers looked through. Lives in `arena`. Errors: HP_EINTERNAL (the graphs are
 * not of one network). */
hp_status hp_counterparts(hp_arena *arena, const hp_graph *quantised, const hp_graph *real, int32_t **of,
                          hp_error *err);

/* Sets the quantisation of every tensor of `c`'s graph that wants one: of the union of the ranges that share
 * it. range: per tensor of that graph. */
void hp_share_qparams(hp_constants *c, const hp_range *range);

#endif
