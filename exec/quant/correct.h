/* correct.h - bias correction: subtracts, in a layer's bias, the mean error that rounded weights cause in its
 * output (Nagel et al. 2019, "Data-Free Quantization Through Weight Equalization and Bias Correction", 4.2;
 * the means of the inputs are measured). */
#ifndef HP_CORRECT_H
#define HP_CORRECT_H

#include "exec/data/weights/constants.h"

/* Adds to each bias of an 8-bit layer the calibration mean of its real output minus that with rounded
 * weights, before the activation. That is the sum over weights of (w - rounded w) * mean of their input
 * channel. mean: per channel of the layer's first input, in real units. Padding, whose mean is 0, is treated
 * like the image, which is wrong only at the border. Errors: those of hp_constants_filter. */
hp_status hp_bias_correct(hp_constants *c, int layer, const double *mean, hp_error *err);

#endif
