/* equalise.h - cross-layer equalisation (Nagel et al. 2019, "Data-Free Quantization Through Weight
 * Equalization and Bias Correction", 4.1): the channels between two layers are rescaled so that both layers'
 * weights use their ranges alike; the network's function stays.
 *
 * Where a channel may be scaled by any factor: nothing, relu or leaky relu between the layers, as act(s x) =
 * s act(x) for s > 0. Behind relu6 (and clips from 0) the bound would move: there a channel is scaled only
 * if calibration never saw it at the bound, and never so that it would come to lie beyond it. */
#ifndef HP_QUANT_EQUALISE_H
#define HP_QUANT_EQUALISE_H

#include "exec/data/constants.h"
#include "plan/base/arena.h"

/* Factors of every layer's channels; NULL where a layer keeps its own. */
typedef struct hp_factors {
    int n_layer;
    float **in, **out;
} hp_factors;

/* Finds factors for the float constants `c` and sets them there, in the place of earlier ones. most: per
 * tensor, the largest value calibration saw in each channel; NULL (all or one): not known, so nothing behind
 * a bound is scaled. Lives in `arena`. Errors: those of hp_constants_filter. */
hp_status hp_equalise(hp_arena *arena, hp_constants *c, const double *const *most, hp_factors *f,
                      hp_error *err);

/* Sets the factors found for graph `from` in constants of another deployment of the network: by layers'
 * names. */
void hp_factors_apply(const hp_factors *f, const hp_graph *from, hp_constants *to);

#endif
