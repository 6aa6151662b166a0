/* cost_line.c - piecewise linear interpolation. Within a shape class, time is work over rate plus an
 * overhead, and the rate changes slowly. */
#include "costmodels/cost_line.h"

#include <math.h>

static double line_through(const double *x, const double *y, int i, int j, double at) {
    return y[i] + (y[j] - y[i]) * (at - x[i]) / (x[j] - x[i]);
}

/* A slope between nearly equal sizes is noise: it is not extrapolated. */
static const double APART = 1.1;

static int partner_of_first(const double *x, int n) {
    int i = 1;
    while (i < n - 1 && x[i] < APART * x[0]) i++;
    return i;
}

static int partner_of_last(const double *x, int n) {
    int i = n - 2;
    while (i > 0 && APART * x[i] > x[n - 1]) i--;
    return i;
}

double hp_line_at(const double *x, const double *y, int n, double at) {
    if (at <= x[0]) {
        if (at == x[0]) return y[0]; // NOLINT: exact at the points
        const int far = n > 1 ? partner_of_first(x, n) : 0;
        if (n > 1 && y[far] >= y[0] && line_through(x, y, 0, far, 0) >= 0)
            return line_through(x, y, 0, far, at);
        return x[0] > 0 ? y[0] * at / x[0] : y[0];
    }
    if (n == 1) return x[0] > 0 ? y[0] * at / x[0] : y[0];
    if (at > x[n - 1]) {
        const double t = line_through(x, y, partner_of_last(x, n), n - 1, at);
        return t < y[n - 1] ? y[n - 1] * at / x[n - 1] : t; /* noise made the last segment decrease */
    }
    int low = 0, high = n - 1; /* x[low] < at */
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (x[middle] < at)
            low = middle;
        else
            high = middle;
    }
    if (at == x[high]) return y[high]; // NOLINT: exact at the points
    return line_through(x, y, low, high, at);
}

double hp_octaves_outside(double least, double most, double at) {
    static const double LEAST = 1e-3; /* bytes, pixels or flop per byte: practically none */
    const double low = fmax(least, LEAST), high = fmax(most, LEAST), x = fmax(at, LEAST);
    return x < low ? log2(low / x) : x > high ? log2(x / high) : 0;
}
