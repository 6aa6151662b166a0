/* line.c - why linear: within a shape class time is work over rate plus an overhead, and the rate changes
 * slowly. */
#include "costmodels/line.h"

static double through(const double *x, const double *y, int i, double at) {
    return y[i] + (y[i + 1] - y[i]) * (at - x[i]) / (x[i + 1] - x[i]);
}

double hp_line_at(const double *x, const double *y, int n, double at) {
    if (at <= x[0]) {
        if (at == x[0]) return y[0]; // NOLINT: exact at the points
        if (n > 1 && y[1] >= y[0] && through(x, y, 0, 0) >= 0) return through(x, y, 0, at);
        return x[0] > 0 ? y[0] * at / x[0] : y[0];
    }
    if (n == 1) return x[0] > 0 ? y[0] * at / x[0] : y[0];
    int low = 0, high = n - 1; /* x[low] < at */
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (x[middle] < at)
            low = middle;
        else
            high = middle;
    }
    if (at == x[high]) return y[high]; // NOLINT: exact at the points
    const double t = through(x, y, low, at);
    if (at > x[n - 1] && t < y[n - 1]) return y[n - 1] * at / x[n - 1]; /* noise made the last segment fall */
    return t;
}

bool hp_line_far(const double *x, int n, double at) {
    return at < x[0] / 2 || at > x[n - 1] * 2;
}
