/* histogram.h - a tensor's statistics for calibration: its range, then a histogram.
 *
 * Pass 1 finds the range, pass 2 counts into bins of equal width over it. Minima and integer counts do not
 * depend on how elements were distributed, so merging ranks gives the same bits for every partition. */
#ifndef HP_HISTOGRAM_H
#define HP_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* [lo, hi]; lo > hi: empty. */
typedef struct hp_range {
    double lo, hi;
} hp_range;

static inline hp_range hp_range_none(void) {
    return (hp_range){1, 0};
}
static inline bool hp_range_empty(const hp_range *r) {
    return r->lo > r->hi;
}
hp_range hp_range_around(const hp_range *a, const hp_range *b); /* the smallest range that contains both */

enum { HP_BINS = 2048 };

typedef struct hp_histogram {
    hp_range range;
    int64_t zeros; /* exact zeros, which every quantisation represents exactly: not in count */
    int64_t count[HP_BINS];
} hp_histogram;

/* Starts empty over that range, whose ends are the outer edges. */
void hp_histogram_start(hp_histogram *h, hp_range range);
/* Counts n elements; values outside go into the bin at that end. */
void hp_histogram_count(hp_histogram *h, const double *x, int64_t n);

static inline double hp_histogram_width(const hp_histogram *h) { /* width of a bin */
    return (h->range.hi - h->range.lo) / HP_BINS;
}

#endif
