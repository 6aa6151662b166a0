/* branch.h - sub-graph parallelism: which layers of a stage run on which of several ranks. */
#ifndef HP_BRANCH_H
#define HP_BRANCH_H

#include "networks/graph/graph.h"

/* Distributes layers first .. end-1 over `branches` ranks. Returns the rank of each output tensor (0 for
 * tensors that enter the stage). List scheduling in layer order: each layer goes to the rank on which it
 * finishes earliest, given the arrival of its inputs (Graham 1969; earliest finish time as in HEFT, Topcuoglu
 * et al. 2002). */
int32_t *hp_branches(hp_arena *arena, const hp_graph *g, int branches, int first, int end);

/* What a branch holds: elements of the maps that its layers read or write, and of their parameters. */
typedef struct hp_branch_load {
    double maps, params;
} hp_branch_load;

/* The largest of layers first .. end-1, each relative to the mean over the branches, at least 1: layers
 * are seldom spread evenly, and a chain of them is on one rank. */
hp_branch_load hp_branch_fullest(const hp_graph *g, int branches, int first, int end);

#endif
