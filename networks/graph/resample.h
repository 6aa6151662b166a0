/* resample.h - which input pixels a resized map reads, and with which weights. Coordinates follow ONNX
 * Resize, so that the planner's boxes and every kernel agree on each pixel. Coordinates beyond the map read
 * the nearest pixel. */
#ifndef HP_RESAMPLE_H
#define HP_RESAMPLE_H

#include "networks/graph/graph.h"

#include <math.h>

/* How `out` items along one axis are computed from `in` items. */
typedef struct hp_resampling {
    int32_t interpolation, corners, inside, in, out; /* as in hp_layer */
    double cubic, scale;
} hp_resampling;

/* Input items lo .. hi. Nearest and linear: output = (1 - weight) * input[lo] + weight * input[hi]; a single
 * pixel has hi = lo, weight = 0. */
typedef struct hp_resample {
    int32_t lo, hi;
    double weight;
} hp_resample;

/* Output = the sum of share[k] * input[at[k]], k < n; with cubic, some items may coincide. */
typedef struct hp_taps {
    int32_t n, at[4];
    double share[4];
} hp_taps;

static inline hp_resampling hp_resampling_of(const hp_layer *l, bool rows, int32_t in, int32_t out) {
    const hp_resampling r = {l->resize.interpolation,
                             l->resize.corners,
                             l->resize.inside,
                             in,
                             out,
                             l->resize.cubic,
                             rows ? l->resize.scale_h : l->resize.scale_w};
    return r;
}

#ifdef __CUDACC__
#define HP_RESAMPLE static __host__ __device__ inline
#else
#define HP_RESAMPLE static inline
#endif

/* A coordinate: the whole pixel at or before it, and the remainder; a fraction if it follows from sizes. */
typedef struct hp_coordinate {
    int64_t below;
    double part;    /* 0 <= part < 1 */
    bool past_half; /* part > 1/2 */
} hp_coordinate;

HP_RESAMPLE hp_coordinate hp_coordinate_of_fraction(int64_t num, int64_t den) {
    const int64_t below = num >= 0 ? num / den : -((-num + den - 1) / den), rest = num - below * den;
    const hp_coordinate c = {below, (double)rest / (double)den, 2 * rest > den};
    return c;
}

HP_RESAMPLE hp_coordinate hp_coordinate_of_real(double at) {
    const double below = floor(at);
    const hp_coordinate c = {(int64_t)below, at - below, at - below > 0.5};
    return c;
}

HP_RESAMPLE hp_coordinate hp_coordinate_at(const hp_resampling *r, int64_t i) {
    const bool first =
        r->out == 1 && (r->corners == HP_CORNERS_ALIGN || r->corners == HP_CORNERS_PYTORCH_HALF_PIXEL);
    if (first) return hp_coordinate_of_fraction(0, 1);
    if (r->corners == HP_CORNERS_ALIGN) return hp_coordinate_of_fraction(i * (r->in - 1), r->out - 1);
    if (r->corners == HP_CORNERS_ASYMMETRIC)
        return r->scale > 0 ? hp_coordinate_of_real((double)i / r->scale)
                            : hp_coordinate_of_fraction(i * r->in, r->out);
    return r->scale > 0 ? hp_coordinate_of_real(((double)i + 0.5) / r->scale - 0.5)
                        : hp_coordinate_of_fraction((2 * i + 1) * r->in - r->out, 2 * (int64_t)r->out);
}

HP_RESAMPLE int32_t hp_pixel_inside(const hp_resampling *r, int64_t i) {
    return (int32_t)(i < 0 ? 0 : i >= r->in ? r->in - 1 : i);
}

/* Input of output item i; lo and hi are monotonic in i. */
HP_RESAMPLE hp_resample hp_resample_at(const hp_resampling *r, int64_t i) {
    const hp_coordinate c = hp_coordinate_at(r, i);
    hp_resample s = {0, 0, 0};
    if (r->interpolation == HP_CUBIC) {
        s.lo = hp_pixel_inside(r, c.below - 1);
        s.hi = hp_pixel_inside(r, c.below + 2);
    } else if (r->interpolation == HP_NEAREST) {
        s.lo = s.hi = hp_pixel_inside(r, c.below + (r->corners != HP_CORNERS_ASYMMETRIC && c.past_half));
    } else {
        s.lo = hp_pixel_inside(r, c.below);
        s.hi = hp_pixel_inside(r, c.below + (c.part > 0));
        if (s.hi > s.lo) s.weight = c.part;
    }
    return s;
}

/* Keys 1981, equation (6), for a distance 0 <= d < 2; there, a is -1/2. */
HP_RESAMPLE double hp_keys(double a, double d) {
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

HP_RESAMPLE hp_taps hp_cubic_taps(const hp_resampling *r, int64_t i) {
    const hp_coordinate c = hp_coordinate_at(r, i);
    hp_taps t = {4, {0, 0, 0, 0}, {0, 0, 0, 0}};
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        const int64_t at = c.below - 1 + k;
        const bool outside = at < 0 || at >= r->in;
        t.at[k] = hp_pixel_inside(r, at);
        t.share[k] =
            r->inside && outside ? 0 : hp_keys(r->cubic, k < 2 ? c.part + (1 - k) : (k - 1) - c.part);
        sum += t.share[k];
    }
    for (int k = 0; r->inside && k < 4; k++) t.share[k] /= sum;
    return t;
}

HP_RESAMPLE hp_taps hp_taps_at(const hp_resampling *r, int64_t i) {
    if (r->interpolation == HP_CUBIC) return hp_cubic_taps(r, i);
    const hp_resample s = hp_resample_at(r, i);
    const hp_taps t = {s.hi > s.lo ? 2 : 1, {s.lo, s.hi, 0, 0}, {1 - s.weight, s.weight, 0, 0}};
    return t;
}

#undef HP_RESAMPLE

#endif
