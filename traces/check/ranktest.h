/* ranktest.h - do two sets of timings differ? Rank tests make no assumption about the
 * distribution of the noise. */
#ifndef HP_RANKTEST_H
#define HP_RANKTEST_H

/* Two-sided p value of the Mann-Whitney U test; null hypothesis: x and y come from the same distribution.
 * Exact (permutation distribution of the mid-ranks, ties included) up to 50 values, otherwise the normal
 * approximation with tie and continuity corrections. 1 if either is empty. Source: Mann and Whitney 1947;
 * Conover 1999, ch. 5.1. */
double hp_mann_whitney(const double *x, int nx, const double *y, int ny);

/* Two-sided p value of Wilcoxon's signed-rank test; null hypothesis: x is symmetric about `center`. Values
 * equal to `center` are ignored (Wilcoxon 1945). Exact up to 50 values, ties included, otherwise the normal
 * approximation. 1 if none is left. */
double hp_wilcoxon(const double *x, int n, double center);

#endif
