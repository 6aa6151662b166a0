/* builder_inside.h - helpers shared by the builder's files. */
#ifndef HP_BUILDER_INSIDE_H
#define HP_BUILDER_INSIDE_H

#include "networks/nets/builder.h"

/* Appends the layer and its output tensor; returns the tensor, or 0 after a failure. */
int hp_build_append(hp_builder *b, hp_layer l, const char *name, int out_c);
/* Adds parameter "<layer>.<suffix>" ("<layer>" if NULL) to the last layer; the shape ends at the first 0 of
 * `dim`. */
void hp_build_append_param(hp_builder *b, const char *suffix, hp_param_kind kind, hp_init init,
                           int64_t fan_in, const int dim[4]);

#endif
