/* sharing.h - which tensors of a deployed graph must have equal qparams, so that concatenating, copying and
 * taking maxima of bytes is exact. */
#ifndef HP_SHARING_H
#define HP_SHARING_H

#include "exec/data/weights/constants.h"
#include "exec/quant/histogram.h"
#include "base/arena.h"

/* For each tensor, the lowest tensor id of its group. Groups join the quantised inputs and outputs of concat,
 * max-pool, pad and nearest resize, transitively. Lives in `arena`. */
int32_t *hp_qparam_groups(hp_arena *arena, const hp_graph *g);

/* For each tensor of the int8 graph, the corresponding tensor of the float graph. That is the output of the
 * layer of the same name; quant and dequant layers map to their input's. Lives in `arena`. Errors:
 * HP_EINTERNAL (the graphs are of different networks). */
hp_status hp_float_counterparts(hp_arena *arena, const hp_graph *quantised, const hp_graph *real,
                                int32_t **of, hp_error *err);

/* Sets the qparams of every tensor of `c`'s graph that needs them, from the union of the ranges of its group.
 * range: per tensor of that graph. */
void hp_qparams_unify(hp_constants *c, const hp_range *range);

#endif
