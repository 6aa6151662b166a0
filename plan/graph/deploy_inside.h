/* deploy_inside.h - what the steps of a deployment share. */
#ifndef HP_DEPLOY_INSIDE_H
#define HP_DEPLOY_INSIDE_H

#include "plan/graph/deploy.h"

/* Layers of g are in place with the tensor numbers of `old`: renumbers tensors, units and indices. */
void hp_deploy_renumber(hp_arena *arena, hp_graph *g, const hp_tensor *old, int n_old);

/* Takes concatenations out that nobody has to compute. Layers read each other by tensor; numbers stay. */
void hp_deploy_concats(hp_graph *g);

/* Gives every tensor its store and puts quant and dequant layers where stores meet. */
hp_status hp_deploy_stores(hp_arena *arena, hp_graph *g, const hp_deploy_options *o, hp_error *err);

#endif
