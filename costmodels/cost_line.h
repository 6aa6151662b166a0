/* cost_line.h - a piecewise linear function through measured points, exact at the points. */
#ifndef HP_COST_LINE_H
#define HP_COST_LINE_H

#include <stdbool.h>

/* Points have x strictly increasing, n >= 1. Beyond the last point, extrapolates the line through it and the
 * next smaller point of a clearly different size. Below the first point likewise, down to a non-negative
 * intercept. A line that would become negative, and a single point, are extrapolated through the origin. */
double hp_line_at(const double *x, const double *y, int n, double at);

/* Octaves between `at` and the nearest of least..most; 0: inside. */
double hp_octaves_outside(double least, double most, double at);

/* More than a factor of two outside the measured range, a figure is a guess. */
#define HP_FAR_OCTAVES 1.0

#endif
