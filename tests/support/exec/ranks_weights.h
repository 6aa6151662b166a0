/* ranks_weights.h - the parameters of many ranks and those of the whole network: distributed to the ranks
 * before a run, assembled and compared after it. */
#ifndef HP_TESTS_RANKS_WEIGHTS_H
#define HP_TESTS_RANKS_WEIGHTS_H

#include "exec/base/half.h"
#include "exec/data/weights/weights.h"

#include <stdlib.h>
#include <string.h>

int64_t ranks_param_elems(const hp_graph *g);
void ranks_put(hp_dtype t, void *p, int64_t i, double v);

/* Element e of parameter i on this rank, whose place must hold it. */
double ranks_param_get(const hp_weights *w, int i, int64_t e);

/* Gives the rank its slices of `whole`, which has every parameter of the graph in order. */
void ranks_param_fill(const hp_weights *w, const double *whole);

/* Assembles every parameter of the graph, in order, from all ranks. Errors: HP_EINTERNAL if ranks differ or
 * an element does not have exactly one home, naming both. */
hp_status ranks_param_whole(const hp_program *p, const hp_graph *g, const hp_weights *rank, double *whole,
                            hp_error *err);

#endif
