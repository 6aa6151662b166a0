/* resample.h - which input pixels a resized map reads: coordinates as ONNX Resize defines them, in integer
 * arithmetic, so that the planner's boxes and every kernel agree on each pixel. */
#ifndef HP_RESAMPLE_H
#define HP_RESAMPLE_H

#include "plan/graph/graph.h"

/* Output = (1 - weight) * input[lo] + weight * input[hi]; a single pixel is hi = lo, weight = 0. */
typedef struct hp_resample {
    int32_t lo, hi;
    double weight;
} hp_resample;

/* Item i of an axis of `out` items, made from one of `in` items. Monotonic in i. */
hp_resample hp_resample_at(const hp_layer *resize, int32_t in, int32_t out, int64_t i);

#endif
