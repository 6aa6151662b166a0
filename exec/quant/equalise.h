/* equalise.h - cross-layer equalisation (Nagel et al. 2019, "Data-Free Quantization Through Weight
 * Equalization and Bias Correction", 4.1): rescales the channels between two layers without changing the
 * network's function.
 *
 * Weights have a scale per output channel, so the first layer's absorb any factor without loss. The tensor
 * between the layers has one scale, so its channels are brought closer to one another, as far as the second
 * layer's columns allow. With measured ranges a and columns r the factor is sqrt(r / a) up to a constant
 * (Xiao et al. 2022, "SmoothQuant", equation 4, strength 1/2). Before a depthwise layer, which has no columns
 * that share a scale, it is 1 / a.
 *
 * A channel may be scaled if nothing, relu or leaky relu lies between the layers, as act(s x) = s act(x) for
 * s > 0. relu6, and clips from 0, have a bound that would move. There a channel is scaled only if calibration
 * never saw it near the bound, and never so far that it would come near it. */
#ifndef HP_EQUALISE_H
#define HP_EQUALISE_H

#include "exec/data/weights/constants.h"
#include "base/arena.h"

/* Factors of every layer's channels; NULL for a layer without. */
typedef struct hp_factors {
    int n_layer;
    float **in, **out;
} hp_factors;

/* Computes factors for the float constants `c` and sets them there, replacing earlier ones. most: per tensor,
 * the largest magnitude that calibration saw in each channel of the network without factors; NULL: unknown,
 * nothing is scaled there. Lives in `arena`. Errors: those of hp_constants_filter. */
hp_status hp_equalise(hp_arena *arena, hp_constants *c, const double *const *most, hp_factors *f,
                      hp_error *err);

/* Sets the factors found for graph `from` in the constants of another deployment of the same network; layers
 * are matched by name. */
void hp_factors_apply(const hp_factors *f, const hp_graph *from, hp_constants *to);

#endif
