/* clip_mse.c - the clipping range of least mean squared error: rounding to 256 levels inside, clipping
 * outside. */
#include "exec/quant/clip.h"

#include <math.h>

/* Integral of (x - at)^2 over [a, b]. */
static double squares(double a, double b, double at) {
    const double p = a - at, q = b - at;
    return (q * q * q - p * p * p) / 3;
}

/* Levels and bins both ascend: one sweep over both. */
double hp_quantisation_error(const hp_histogram *h, hp_range clip) {
    const hp_qparam q = hp_qparam_of(clip);
    const double scale = (double)q.scale, width = hp_histogram_width(h);
    double sum = 0;
    int level = 0;
    for (int i = 0; i < HP_BINS; i++) {
        if (h->count[i] == 0) continue;
        const double end = h->range.lo + (i + 1) * width;
        double at = h->range.lo + i * width, error = 0;
        while (at < end) {
            while (level < 255 && (level - q.zero + 0.5) * scale <= at) level++;
            const double next = level < 255 ? fmin((level - q.zero + 0.5) * scale, end) : end;
            error += squares(at, next, (level - q.zero) * scale);
            at = next;
        }
        sum += error / width * (double)h->count[i];
    }
    return sum;
}

/* Fraction of the range kept at each end. */
typedef struct shares {
    double lo, hi, error;
} shares;

static void try_shares(const hp_histogram *h, double lo, double hi, shares *best) {
    if (lo < 0 || hi < 0 || lo > 1 || hi > 1 || lo + hi == 0) return;
    const double error = hp_quantisation_error(h, (hp_range){h->range.lo * lo, h->range.hi * hi});
    if (error < best->error) *best = (shares){lo, hi, error};
}

/* Searches coarsely, then around the best with halved steps. An end on the far side of
 * zero is not searched. */
hp_range hp_clip_mse(const hp_histogram *h) {
    enum { COARSE = 24, HALVINGS = 8 };
    const bool below = h->range.lo<0, above = h->range.hi> 0;
    shares best = {1, 1, hp_quantisation_error(h, h->range)};
    for (int i = below ? 1 : COARSE; i <= COARSE; i++)
        for (int j = above ? 1 : COARSE; j <= COARSE; j++)
            try_shares(h, (double)i / COARSE, (double)j / COARSE, &best);
    double step = 0.5 / COARSE;
    for (int n = 0; n < HALVINGS; n++, step /= 2) {
        const shares from = best;
        for (int i = -1; i <= 1; i++)
            for (int j = -1; j <= 1; j++)
                try_shares(h, from.lo + (below ? i * step : 0), from.hi + (above ? j * step : 0), &best);
    }
    const hp_range r = h->range;
    return (hp_range){below ? r.lo * best.lo : r.lo, above ? r.hi * best.hi : r.hi};
}
