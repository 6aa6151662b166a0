/* clip_entropy.c - the clipping threshold that loses the least information: smallest Kullback-Leibler
 * divergence between the clipped histogram and its 128-level approximation (Migacz 2017, "8-bit Inference
 * with TensorRT", GTC S7310). */
#include "exec/quant/clip.h"
#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>

enum { LEVELS = 128 };

/* Prefix sums over the bins: elements c, non-empty bins, c log c. */
typedef struct sums {
    double mass[HP_BINS + 1], plogp[HP_BINS + 1];
    int held[HP_BINS + 1];
} sums;

/* Bins [first, end) are kept; elements of other bins count in the first and last of these. */
typedef struct window {
    int first, end;
} window;

static double xlogx(double x) {
    return x > 0 ? x * log(x) : 0;
}

static void sum_prefixes(const hp_histogram *h, sums *s) {
    for (int i = 0; i < HP_BINS; i++) {
        const double c = (double)h->count[i];
        s->mass[i + 1] = s->mass[i] + c;
        s->plogp[i + 1] = s->plogp[i] + xlogx(c);
        s->held[i + 1] = s->held[i] + (c > 0);
    }
}

/* Change of the sum of p log(q / p) when `clipped` elements are added to bin `i`, which q approximates. Minus
 * infinity for an empty bin, where q is 0. */
static double clipped_into(const hp_histogram *h, int i, double clipped, double q) {
    const double c = (double)h->count[i];
    if (clipped == 0) return 0;
    if (c == 0) return -INFINITY;
    return clipped * log(q) - (xlogx(c + clipped) - xlogx(c));
}

/* Sum of p log(p / q). p: counts including clipped elements; q: the mass of a level, shared evenly among its
 * non-empty bins. Both are normalised. */
static double divergence(const hp_histogram *h, const sums *s, const window *w) {
    const int n = w->end - w->first;
    const double all = s->mass[HP_BINS], inside = s->mass[w->end] - s->mass[w->first];
    const double below = s->mass[w->first], above = all - s->mass[w->end];
    double sum = s->plogp[w->end] - s->plogp[w->first];
    for (int k = 0; k < LEVELS; k++) {
        const int a = w->first + (int)((int64_t)n * k / LEVELS),
                  b = w->first + (int)((int64_t)n * (k + 1) / LEVELS);
        const double mass = s->mass[b] - s->mass[a];
        const double each = mass / (s->held[b] - s->held[a]);
        if (mass > 0) sum -= mass * log(each);
        if (k == 0) sum -= clipped_into(h, w->first, below, each);
        if (k == LEVELS - 1) sum -= clipped_into(h, w->end - 1, above, each);
    }
    return sum / all - log(all) + log(inside);
}

/* All bins within `reach` of zero, which is never cut off. */
static window window_of(int zero, int reach) {
    return (window){zero - reach > 0 ? zero - reach : 0, zero + reach < HP_BINS ? zero + reach : HP_BINS};
}

static window least_divergence(const hp_histogram *h, const sums *s, int zero) {
    const int most = zero > HP_BINS - zero ? zero : HP_BINS - zero;
    double least = INFINITY;
    window best = {0, HP_BINS};
    for (int reach = LEVELS / 2; reach <= most; reach++) {
        const window w = window_of(zero, reach);
        if (w.end - w.first < LEVELS || s->mass[w.end] == s->mass[w.first]) continue;
        const double d = divergence(h, s, &w);
        if (d < least) best = w;
        if (d < least) least = d;
    }
    return best;
}

hp_range hp_clip_entropy(const hp_histogram *h) {
    const double width = hp_histogram_width(h), at = rint(-h->range.lo / width);
    const int zero = at <= 0 ? 0 : at >= HP_BINS ? HP_BINS : (int)at;
    sums *s = hp_zeroed(1, sizeof *s);
    sum_prefixes(h, s);
    const window best = least_divergence(h, s, zero);
    free(s);
    const double lo = h->range.lo + best.first * width, hi = h->range.lo + best.end * width;
    return (hp_range){lo, best.end == HP_BINS ? h->range.hi : hi};
}
