/* weights_places.h - learned positions of a network for another image size than the file's. */
#ifndef HP_WEIGHTS_PLACES_H
#define HP_WEIGHTS_PLACES_H

#include "exec/data/weights/safetensors.h"
#include "networks/graph/graph.h"

/* Does the file have a table for a class token and a square map of another size, so that
 * it can be resized? */
bool hp_places_stretch(const hp_st_tensor *t, const hp_graph *g, int param);
/* Reads elements [first, first + count) of the parameter. */
void hp_places_read(const hp_st_tensor *t, const hp_graph *g, int param, int64_t first, int64_t count,
                    double *to);

#endif
