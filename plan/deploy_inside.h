/* deploy_inside.h - what deploy.c and deploy_store.c share. */
#ifndef HP_DEPLOY_INSIDE_H
#define HP_DEPLOY_INSIDE_H

#include "plan/deploy.h"

/* Layers of g are in place with the tensor numbers of `old`: renumbers tensors, units and indices. */
void hp_deploy_renumber(hp_arena *arena, hp_graph *g, const hp_tensor *old, int n_old);

/* Gives every tensor its store and puts quant and dequant layers where stores meet. */
hp_status hp_deploy_stores(hp_arena *arena, hp_graph *g, const hp_deploy_options *o, hp_error *err);

#endif
