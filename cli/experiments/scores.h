/* scores.h - how well predictions rank, and how often their intervals hold what was published. Pure functions. */
#ifndef HP_SCORES_H
#define HP_SCORES_H

/* Kendall's tau-b of n pairs (a[i], b[i]): of all couples of pairs, those in the same order less those in opposite order, over
 * the geometric mean of those that a does not tie and those that b does not. NAN: a or b ties them all. Cost: n^2.
 * M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945). */
double score_tau(int n, const double *a, const double *b);

/* An interval around a prediction of 1; its ends belong to it. low 0: it is not known. */
typedef struct score_interval {
    double low, high;
    double truth; /* what was published, over the prediction */
} score_interval;

/* Of the known ones: how many they are, how many hold the truth, and the median of half of high - low (NAN: none is known). */
typedef struct score_coverage {
    int known, covered;
    double half_width;
} score_coverage;
score_coverage score_cover(int n, const score_interval *interval);

#endif
