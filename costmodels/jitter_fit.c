/* jitter_fit.c - autocovariance of irregular readings by lag, and the fit of an exponential. */
#include "costmodels/jitter_fit.h"

#include <math.h>

/* Lags from 0.25 ms to 1 s, by factors of two. */
enum { LAGS = 12, FEWEST_PAIRS = 20, TAUS = 60 };
#define SHORTEST_LAG_S 0.25e-3

typedef struct bins {
    double lag_s[LAGS], covariance[LAGS];
    int pairs[LAGS];
    double variance;
} bins;

static int bin_of(double lag_s) {
    if (lag_s < SHORTEST_LAG_S) return 0;
    return (int)floor(log2(lag_s / SHORTEST_LAG_S));
}

static bins bin_pairs(const hp_jitter_reading *r, int n) {
    bins b = {.variance = 0};
    for (int i = 0; i < n; i++) {
        const double x = r[i].value - 1;
        b.variance += x * x / n;
        for (int j = i + 1; j < n && r[j].series == r[i].series; j++) {
            const double lag_s = r[j].t_s - r[i].t_s;
            const int k = bin_of(lag_s);
            if (k >= LAGS) break;
            b.lag_s[k] += lag_s;
            b.covariance[k] += x * (r[j].value - 1);
            b.pairs[k]++;
        }
    }
    for (int k = 0; k < LAGS; k++)
        if (b.pairs[k]) b.lag_s[k] /= b.pairs[k], b.covariance[k] /= b.pairs[k];
    return b;
}

/* Best amplitude for a correlation time; *left: the remaining weighted squares. */
static double amplitude_of(const bins *b, double tau_s, double *left) {
    double with = 0, squares = 0;
    for (int k = 0; k < LAGS; k++) {
        if (b->pairs[k] < FEWEST_PAIRS) continue;
        const double e = exp(-b->lag_s[k] / tau_s);
        with += b->pairs[k] * e * b->covariance[k], squares += b->pairs[k] * e * e;
    }
    const double a = squares > 0 ? fmax(0, fmin(b->variance, with / squares)) : 0;
    *left = 0;
    for (int k = 0; k < LAGS; k++) {
        if (b->pairs[k] < FEWEST_PAIRS) continue;
        const double off = b->covariance[k] - a * exp(-b->lag_s[k] / tau_s);
        *left += b->pairs[k] * off * off;
    }
    return a;
}

hp_core_jitter hp_jitter_fit(const hp_jitter_reading *reading, int n) {
    const bins b = bin_pairs(reading, n);
    hp_core_jitter best = {0, 0};
    double least = INFINITY;
    for (int i = 0; i < TAUS; i++) { /* from 0.25 ms to 1 s */
        const double tau_s = SHORTEST_LAG_S * pow(2, LAGS * (double)i / (TAUS - 1));
        double left;
        const double a = amplitude_of(&b, tau_s, &left);
        if (!(a > 0) || left >= least) continue;
        least = left;
        best = (hp_core_jitter){sqrt(a), tau_s};
    }
    return best;
}

double hp_jitter_averaged(double x) {
    return x < 1e-4 ? 1 : 2 * (x - 1 + exp(-x)) / (x * x);
}
