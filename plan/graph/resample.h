/* resample.h - which input pixels a resized map reads, and how much of each: coordinates as ONNX Resize defines them, so
 * that the planner's boxes and every kernel agree on each pixel. Coordinates beyond the map read the nearest pixel. */
#ifndef HP_RESAMPLE_H
#define HP_RESAMPLE_H

#include "plan/graph/graph.h"

#include <math.h>

/* How one axis of `out` items is made from one of `in` items. */
typedef struct hp_resampling {
    int32_t interpolation, corners, inside, in, out; /* as in hp_layer */
    double cubic, scale;
} hp_resampling;

/* Items lo .. hi are read. Of nearest and linear, output = (1 - weight) * input[lo] + weight * input[hi]; a single pixel is
 * hi = lo, weight = 0. */
typedef struct hp_resample {
    int32_t lo, hi;
    double weight;
} hp_resample;

/* Output = the sum of share[k] * input[at[k]], k < n; of cubic, some may be the same item. */
typedef struct hp_taps {
    int32_t n, at[4];
    double share[4];
} hp_taps;

static inline hp_resampling hp_resampling_of(const hp_layer *l, bool rows, int32_t in, int32_t out) {
    const hp_resampling r = {
        l->interpolation, l->corners, l->inside, in, out, l->cubic, rows ? l->scale_h : l->scale_w};
    return r;
}

#ifdef __CUDACC__
#define HP_RESAMPLE static __host__ __device__ inline
#else
#define HP_RESAMPLE static inline
#endif
/* hp_resample_at(resampling, i) and hp_taps_at(resampling, i): of output item i; lo and hi are monotonic in i. */
#include "plan/graph/resample.inc"
#undef HP_RESAMPLE

#endif
