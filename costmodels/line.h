/* line.h - a piecewise linear function through measured points, exact at the points. */
#ifndef HP_LINE_H
#define HP_LINE_H

#include <stdbool.h>

/* Points with x strictly increasing, n >= 1. Beyond the last point, extrapolates the line through it and the
 * next smaller point whose size is not nearly the same. Below the first point likewise, down to a
 * non-negative intercept; a line that would go below zero, and a single point, are extrapolated through the
 * origin. */
double hp_line_at(const double *x, const double *y, int n, double at);

/* Is `at` more than a factor of two outside the points? */
bool hp_line_far(const double *x, int n, double at);

#endif
