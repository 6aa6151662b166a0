/* clip.h - from what was observed of a tensor to its quantisation: which part of the range 0 .. 255 stands
 * for. */
#ifndef HP_QUANT_CLIP_H
#define HP_QUANT_CLIP_H

#include "exec/data/weights/constants.h"
#include "exec/quant/histogram.h"

/* How much of the range is kept. */
typedef enum hp_observer_kind {
    HP_OBSERVE_MINMAX,     /* all of it */
    HP_OBSERVE_PERCENTILE, /* that share of the elements: half of the rest cut off at each end, all of it
                              above where nothing is negative */
    HP_OBSERVE_ENTROPY,    /* what keeps most information: TensorRT's calibration (Migacz 2017, "8-bit
                              Inference with TensorRT"); of signed tensors as ONNX Runtime does it, one
                              threshold for both signs */
    HP_OBSERVE_MSE,        /* least mean squared error of rounding and clipping, both ends searched */
    HP_OBSERVERS
} hp_observer_kind;

typedef struct hp_clip_options {
    int32_t kind;      /* hp_observer_kind */
    double percentile; /* of HP_OBSERVE_PERCENTILE, 99.99 say */
} hp_clip_options;

extern const char *const hp_observer_names[]; /* "minmax", "percentile", "entropy", "mse", NULL */

/* The part of the histogram's range to keep: not empty, within the range. Only min-max looks at the range
 * alone; the others need counts. */
hp_range hp_clip(const hp_histogram *h, const hp_clip_options *o);

/* 8-bit affine quantisation of a range, which is widened to contain 0: a whole zero point stands for 0
 * exactly, and a range without negative numbers has zero point 0. A range too small for float scales has
 * scale 1. */
hp_qparam hp_qparam_of(hp_range r);

/* clip_entropy.c, clip_mse.c */
hp_range hp_clip_entropy(const hp_histogram *h);
hp_range hp_clip_mse(const hp_histogram *h);
/* Mean squared error of elements spread evenly within their bins, times their number, if q stands for them.
 */
double hp_quantisation_error(const hp_histogram *h, hp_range clip);

#endif
