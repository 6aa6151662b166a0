/* histogram.c - ranges and counts that merge exactly; see histogram.h. */
#include "exec/quant/histogram.h"

#include "base/status.h"

#include <string.h>

hp_range hp_range_around(const hp_range *a, const hp_range *b) {
    if (hp_range_empty(a)) return *b;
    if (hp_range_empty(b)) return *a;
    return (hp_range){a->lo < b->lo ? a->lo : b->lo, a->hi > b->hi ? a->hi : b->hi};
}

void hp_histogram_start(hp_histogram *h, hp_range range) {
    memset(h, 0, sizeof *h);
    h->range = range;
}

/* Bins per unit; 0 for a range of one value. */
static double density(const hp_histogram *h) {
    const double length = h->range.hi - h->range.lo;
    return length > 0 ? HP_BINS / length : 0;
}

static inline void count_one(hp_histogram *h, double x, double per_unit) {
    const double at = (x - h->range.lo) * per_unit;
    const int bin = at >= HP_BINS ? HP_BINS - 1 : at > 0 ? (int)at : 0;
    if (x == 0)
        h->zeros++;
    else
        h->count[bin]++;
}

void hp_histogram_count(hp_histogram *h, const double *x, int64_t n) {
    const double per_unit = density(h);
    for (int64_t i = 0; i < n; i++) count_one(h, x[i], per_unit);
}
