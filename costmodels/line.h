/* line.h - a piecewise straight line through measured points: exact at the points. */
#ifndef HP_LINE_H
#define HP_LINE_H

#include <stdbool.h>

/* Points with x strictly increasing, n >= 1. Beyond the last point the slope through it and the next smaller
 * one goes on that is not nearly the same size. Below the first likewise, down to a non-negative intercept; a
 * line that would go below zero, and a single point, are continued through the origin. */
double hp_line_at(const double *x, const double *y, int n, double at);

/* Is `at` further than a factor of two outside the points? */
bool hp_line_far(const double *x, int n, double at);

#endif
