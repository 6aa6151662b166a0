/* scores.h - how well predictions rank, and how often their intervals contain the published value. Pure
 * functions. */
#ifndef HP_SCORES_H
#define HP_SCORES_H

/* Kendall's tau-b of n pairs (a[i], b[i]). The numerator is the number of couples in the same order minus
 * those in opposite order. The denominator is the geometric mean of the couples not tied in a and those not
 * tied in b. NAN if all are tied in a or in b. Cost: n^2. M. G. Kendall, "The treatment of ties in ranking
 * problems", Biometrika 33 (1945). */
double score_tau(int n, const double *a, const double *b);

/* An interval around a prediction of 1, including its ends. low 0: unknown. */
typedef struct score_interval {
    double low, high;
    double truth; /* published value over prediction */
} score_interval;

/* Number of known intervals, number that contain the truth, and the median half-width (high - low) / 2 (NAN:
 * none is known). */
typedef struct score_coverage {
    int known, covered;
    double half_width;
} score_coverage;
score_coverage score_cover(int n, const score_interval *interval);

#endif
