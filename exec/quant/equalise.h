/* equalise.h - cross-layer equalisation (Nagel et al. 2019, "Data-Free Quantization Through Weight
 * Equalization and Bias Correction", 4.1): the channels between two layers are rescaled, and the network's
 * function stays.
 *
 * Weights have a scale per output channel here, so the first layer's take any factor for nothing. What does
 * share a scale is the tensor between the layers: its channels are brought closer to one another, as far as
 * the second layer's columns allow. Measured ranges a and columns r get the factor sqrt(r / a) up to a
 * constant (Xiao et al. 2022, "SmoothQuant", equation 4, strength 1/2); before a depthwise layer, which has
 * no columns that share a scale, 1 / a.
 *
 * Where a channel may be scaled: nothing, relu or leaky relu between the layers, as act(s x) = s act(x) for
 * s > 0. Behind relu6 (and clips from 0) the bound would move: there a channel is scaled only if calibration
 * never saw it near the bound, and never so that it would come near it. */
#ifndef HP_QUANT_EQUALISE_H
#define HP_QUANT_EQUALISE_H

#include "exec/data/weights/constants.h"
#include "plan/base/arena.h"

/* Factors of every layer's channels; NULL where a layer keeps its own. */
typedef struct hp_factors {
    int n_layer;
    float **in, **out;
} hp_factors;

/* Finds factors for the float constants `c` and sets them there, in the place of earlier ones. most: per
 * tensor, the largest size calibration saw in each channel, of the network without factors; NULL: not known,
 * nothing is scaled there. Lives in `arena`. Errors: those of hp_constants_filter. */
hp_status hp_equalise(hp_arena *arena, hp_constants *c, const double *const *most, hp_factors *f,
                      hp_error *err);

/* Sets the factors found for graph `from` in constants of another deployment of the network: by layers'
 * names. */
void hp_factors_apply(const hp_factors *f, const hp_graph *from, hp_constants *to);

#endif
