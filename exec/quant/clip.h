/* clip.h - from the observed values of a tensor to its quantisation: which part of the range the levels
 * 0 .. 255 represent. */
#ifndef HP_CLIP_H
#define HP_CLIP_H

#include "exec/data/weights/constants.h"
#include "exec/quant/histogram.h"

/* How the part to keep is chosen. */
typedef enum hp_observer_kind {
    HP_OBSERVE_MINMAX,     /* all of it */
    HP_OBSERVE_PERCENTILE, /* keeps that share of the elements: half of the rest is cut off at each end, or
                            * all at the top if nothing is negative */
    HP_OBSERVE_ENTROPY,    /* least loss of information: TensorRT's calibration (Migacz 2017, "8-bit
                            * Inference with TensorRT"); for signed tensors, as in ONNX Runtime, one
                            * threshold for both signs */
    HP_OBSERVE_MSE,        /* least mean squared error of rounding and clipping; searches both ends */
    HP_OBSERVERS
} hp_observer_kind;

typedef struct hp_clip_options {
    int32_t kind;      /* hp_observer_kind */
    double percentile; /* for HP_OBSERVE_PERCENTILE, for example 99.99 */
} hp_clip_options;

extern const char *const hp_observer_names[]; /* "minmax", "percentile", "entropy", "mse", NULL */

/* The part of the histogram's range to keep: not empty, within the range. Only min-max
 * works without counts. */
hp_range hp_clip(const hp_histogram *h, const hp_clip_options *o);

/* 8-bit affine quantisation of a range, which is widened to contain 0: an integer zero point represents 0
 * exactly, and a range without negative numbers has zero point 0. A range too small for a float scale gets
 * scale 1. */
hp_qparam hp_qparam_of(hp_range r);

/* clip_entropy.c, clip_mse.c */
hp_range hp_clip_entropy(const hp_histogram *h);
hp_range hp_clip_mse(const hp_histogram *h);
/* Squared error of quantising with `clip`, summed over the elements, which are assumed to be spread evenly
 * within their bins. */
double hp_quantisation_error(const hp_histogram *h, hp_range clip);

#endif
