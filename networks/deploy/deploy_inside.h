/* deploy_inside.h - functions shared by the steps of a deployment (deploy*.c). */
#ifndef HP_DEPLOY_INSIDE_H
#define HP_DEPLOY_INSIDE_H

#include "networks/deploy/deploy.h"

/* Renumbers tensors, units and indices. On entry, the layers of g are in their final places but refer to
 * tensor ids of `old`. */
void hp_deploy_renumber(hp_arena *arena, hp_graph *g, const hp_tensor *old, int n_old);

/* Removes concatenations that need not be computed. Layers refer to each other by tensor; tensor ids do not
 * change. */
void hp_deploy_concats(hp_graph *g);

/* Assigns every tensor its store and inserts quant and dequant layers between different stores. */
hp_status hp_deploy_stores(hp_arena *arena, hp_graph *g, const hp_deploy_options *o, hp_error *err);

#endif
