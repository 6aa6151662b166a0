/* ranktest.c - Mann-Whitney and Wilcoxon signed-rank tests. GSL provides the normal tail; the exact
 * distributions are computed here (GSL has neither test).
 *
 * Mid-ranks are stored doubled, so they are integers even with ties. The exact distribution counts in how
 * many ways every possible sum of doubled ranks can occur: all counts stay below 2^53, so doubles
 * represent them exactly. */
#include "traces/check/ranktest.h"
#include "base/alloc.h"

#include "base/status.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_MAX = 50 }; /* 2^50 and C(50, 25) are exact in a double */

typedef struct ranked {
    double value;
    int index, rank2; /* doubled mid-rank, from 2 */
} ranked;

static int compare_values(const void *a, const void *b) {
    const double x = ((const ranked *)a)->value, y = ((const ranked *)b)->value;
    return (x > y) - (x < y);
}

/* Sorts and ranks; returns the sum of t^3 - t over the groups of t ties. */
static double rank_values(ranked *v, int n) {
    qsort(v, (size_t)n, sizeof *v, compare_values);
    double ties = 0;
    for (int first = 0, last; first < n; first = last) {
        for (last = first + 1; last < n && v[last].value == v[first].value;) last++;
        for (int i = first; i < last; i++) v[i].rank2 = first + 1 + last;
        const double t = last - first;
        ties += t * t * t - t;
    }
    return ties;
}

static double two_sided_normal(double deviation, double variance, double continuity) {
    if (variance <= 0) return 1;
    const double z = fmax(0, fabs(deviation) - continuity) / sqrt(variance);
    return fmin(1, 2 * gsl_cdf_ugaussian_Q(z));
}

/* Fraction of the counted sums that are at least as far from `middle2`/2 as `sum`. `ways` has n entries. */
static double tail_share(const double *ways, int n, int middle2, int sum) {
    double total = 0, far = 0;
    for (int s = 0; s < n; s++) {
        total += ways[s];
        if (abs(2 * s - middle2) >= abs(2 * sum - middle2)) far += ways[s];
    }
    return fmin(1, far / total);
}

/* ways[k][s]: number of k-element subsets of the ranks with sum s; only row nx is needed. */
static double exact_two_samples(const ranked *v, int n, int nx, int sum) {
    const int width = n * (n + 1) + 1; /* the sum of all doubled ranks is n (n + 1) */
    double *ways = hp_zeroed((size_t)(nx + 1) * (size_t)width, sizeof *ways);
    ways[0] = 1;
    for (int i = 0; i < n; i++)
        for (int k = nx; k >= 1; k--)
            for (int s = width - 1; s >= v[i].rank2; s--)
                ways[k * width + s] += ways[(k - 1) * width + s - v[i].rank2];
    const double p = tail_share(&ways[nx * width], width, 2 * nx * (n + 1), sum);
    free(ways);
    return p;
}

double hp_mann_whitney(const double *x, int nx, const double *y, int ny) {
    if (nx <= 0 || ny <= 0) return 1;
    const int n = nx + ny;
    ranked *v = hp_zeroed((size_t)n, sizeof *v);
    for (int i = 0; i < n; i++) v[i] = (ranked){i < nx ? x[i] : y[i - nx], i, 0};
    const double ties = rank_values(v, n);
    double sum2 = 0; /* sum over x, doubled */
    for (int i = 0; i < n; i++)
        if (v[i].index < nx) sum2 += v[i].rank2;
    double p;
    if (n <= EXACT_MAX) {
        p = exact_two_samples(v, n, nx, (int)sum2);
    } else {
        const double a = nx, b = ny, all = n;
        const double variance = a * b / 12 * (all + 1 - ties / (all * (all - 1)));
        p = two_sided_normal(sum2 / 2 - a * (all + 1) / 2, variance, 0.5);
    }
    free(v);
    return p;
}

/* ways[s]: number of sign assignments in which the positive ranks sum to s. */
static double exact_signed(const ranked *v, int n, int sum) {
    const int width = n * (n + 1) + 1;
    double *ways = hp_zeroed((size_t)width, sizeof *ways);
    ways[0] = 1;
    for (int i = 0; i < n; i++)
        for (int s = width - 1; s >= v[i].rank2; s--) ways[s] += ways[s - v[i].rank2];
    const double p = tail_share(ways, width, n * (n + 1), sum);
    free(ways);
    return p;
}

double hp_wilcoxon(const double *x, int n, double center) {
    ranked *v = hp_zeroed((size_t)(n > 0 ? n : 0), sizeof *v);
    int m = 0;
    for (int i = 0; i < n; i++)
        if (x[i] != center) v[m++] = (ranked){fabs(x[i] - center), i, 0};
    const double ties = rank_values(v, m);
    double sum2 = 0; /* sum over the values above the centre, doubled */
    for (int i = 0; i < m; i++)
        if (x[v[i].index] > center) sum2 += v[i].rank2;
    const double all = m;
    double p = 1;
    if (m > EXACT_MAX)
        p = two_sided_normal(sum2 / 2 - all * (all + 1) / 4, all * (all + 1) * (2 * all + 1) / 24 - ties / 48,
                             0.5);
    else if (m > 0)
        p = exact_signed(v, m, (int)sum2);
    free(v);
    return p;
}
