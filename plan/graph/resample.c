/* resample.c - coordinates of ONNX Resize as fractions; see resample.h. Coordinates beyond the map read the
 * nearest pixel. */
#include "plan/graph/resample.h"

/* num / den, den > 0. */
typedef struct fraction {
    int64_t num, den;
} fraction;

static int64_t floor_of(fraction f) {
    return f.num >= 0 ? f.num / f.den : -((-f.num + f.den - 1) / f.den);
}

static int32_t clamp(int64_t v, int32_t n) {
    return (int32_t)(v < 0 ? 0 : v >= n ? n - 1 : v);
}

/* --- input coordinate of output item i --- */

static fraction half_pixel(int64_t in, int64_t out, int64_t i) {
    return (fraction){(2 * i + 1) * in - out, 2 * out};
}

static fraction pytorch_half_pixel(int64_t in, int64_t out, int64_t i) {
    return out > 1 ? half_pixel(in, out, i) : (fraction){0, 1};
}

static fraction align_corners(int64_t in, int64_t out, int64_t i) {
    return out > 1 ? (fraction){i * (in - 1), out - 1} : (fraction){0, 1};
}

static fraction asymmetric(int64_t in, int64_t out, int64_t i) {
    return (fraction){i * in, out};
}

static fraction (*const positions[HP_CORNERS])(int64_t in, int64_t out, int64_t i) = {
    [HP_CORNERS_HALF_PIXEL] = half_pixel,
    [HP_CORNERS_PYTORCH_HALF_PIXEL] = pytorch_half_pixel,
    [HP_CORNERS_ALIGN] = align_corners,
    [HP_CORNERS_ASYMMETRIC] = asymmetric,
};

/* --- items read at a coordinate --- */

/* Rounds halves down: the smallest integer not below position - 1/2. */
static int64_t round_down(fraction f) {
    return -floor_of((fraction){f.den - 2 * f.num, 2 * f.den});
}

hp_resample hp_resample_at(const hp_layer *l, int32_t in, int32_t out, int64_t i) {
    const fraction at = positions[l->corners](in, out, i);
    if (l->interpolation == HP_NEAREST) {
        const int32_t x = clamp(l->corners == HP_CORNERS_ASYMMETRIC ? floor_of(at) : round_down(at), in);
        return (hp_resample){x, x, 0};
    }
    const int64_t below = floor_of(at), rest = at.num - below * at.den;
    hp_resample r = {clamp(below, in), clamp(below + (rest > 0), in), 0};
    if (r.hi > r.lo) r.weight = (double)rest / (double)at.den;
    return r;
}
