/* clip.c - min-max and percentile ranges, and the affine quantisation of a range; see clip.h. */
#include "exec/quant/clip.h"

#include <math.h>

const char *const hp_observer_names[] = {"minmax", "percentile", "entropy", "mse", NULL};

static int64_t count_elements(const hp_histogram *h) {
    int64_t n = h->zeros;
    for (int i = 0; i < HP_BINS; i++) n += h->count[i];
    return n;
}

/* The bin that contains 0, or is nearest to it. */
static int zero_bin(const hp_histogram *h) {
    const double at = -h->range.lo / hp_histogram_width(h);
    return at >= HP_BINS ? HP_BINS - 1 : at > 0 ? (int)at : 0;
}

/* Count of bin `i`, numbered from the lower or the upper end. */
static int64_t count_from(const hp_histogram *h, int i, bool above) {
    const int bin = above ? HP_BINS - 1 - i : i;
    return h->count[bin] + (bin == zero_bin(h) ? h->zeros : 0);
}

/* Number of bins that can be cut off at that end with at most `share` of the elements. */
static int count_cut_bins(const hp_histogram *h, double share, bool above) {
    const double most = share * (double)count_elements(h);
    int64_t gone = 0;
    for (int i = 0; i < HP_BINS - 1; i++) {
        gone += count_from(h, i, above);
        if ((double)gone > most) return i;
    }
    return HP_BINS - 1;
}

static hp_range percentile_range(const hp_histogram *h, double keep) {
    const double rest = 1.0 - keep / 100.0, width = hp_histogram_width(h);
    const bool two_sided = h->range.lo < 0;
    const int below = two_sided ? count_cut_bins(h, rest / 2, false) : 0;
    const int above = count_cut_bins(h, two_sided ? rest / 2 : rest, true);
    return (hp_range){h->range.lo + below * width, h->range.hi - above * width};
}

static hp_range choose_range(const hp_histogram *h, const hp_clip_options *o) {
    if (o->kind == HP_OBSERVE_PERCENTILE) return percentile_range(h, o->percentile);
    return o->kind == HP_OBSERVE_ENTROPY ? hp_clip_entropy(h) : hp_clip_mse(h);
}

/* Clamps: rounding, or a search at an end far from zero, may move a result slightly out of the range. */
hp_range hp_clip(const hp_histogram *h, const hp_clip_options *o) {
    const hp_range all = h->range;
    if (!(all.hi > all.lo) || o->kind == HP_OBSERVE_MINMAX) return all;
    const hp_range r = choose_range(h, o);
    const double lo = fmin(fmax(r.lo, all.lo), all.hi);
    return (hp_range){lo, fmin(fmax(r.hi, lo), all.hi)};
}

hp_qparam hp_qparam_of(hp_range r) {
    const double lo = fmin(r.lo, 0), hi = fmax(r.hi, 0), scale = (hi - lo) / 255;
    if (hp_range_empty(&r) || !(scale >= 0x1p-64)) return (hp_qparam){1, 0};
    const double zero = rint(-lo / scale);
    return (hp_qparam){(float)scale, (int32_t)fmin(fmax(zero, 0), 255)};
}
