/* correct.h - bias correction: what rounding the weights does to the mean of a layer's output goes into its
 * bias (Nagel et al. 2019, "Data-Free Quantization Through Weight Equalization and Bias Correction", 4.2; the
 * means of the inputs are measured). */
#ifndef HP_QUANT_CORRECT_H
#define HP_QUANT_CORRECT_H

#include "exec/data/weights/constants.h"

/* Adds to the bias of an 8-bit layer, per output channel, the mean over calibration of its real output less
 * its output with rounded weights, before the activation: sum over weights of (w - rounded w) * mean of their
 * input channel. mean: per channel of the layer's first input, in real units. Padding, whose mean is 0, is
 * taken for image: an error at the border alone. Errors: those of hp_constants_filter. */
hp_status hp_bias_correct(hp_constants *c, int layer, const double *mean, hp_error *err);

#endif
