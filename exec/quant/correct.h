/* correct.h - bias correction: the mean error that rounded weights cause in a layer's output is subtracted in
 * its bias (Nagel et al. 2019, "Data-Free Quantization Through Weight Equalization and Bias Correction", 4.2;
 * the means of the inputs are measured). */
#ifndef HP_CORRECT_H
#define HP_CORRECT_H

#include "exec/data/weights/constants.h"

/* Adds to the bias of an 8-bit layer, per output channel, the calibration mean of its real output minus its
 * output with rounded weights, before the activation: sum over weights of (w - rounded w) * mean of their
 * input channel. mean: per channel of the layer's first input, in real units. Padding, whose mean is 0, is
 * treated as image, which is wrong at the border only. Errors: those of hp_constants_filter. */
hp_status hp_bias_correct(hp_constants *c, int layer, const double *mean, hp_error *err);

#endif
