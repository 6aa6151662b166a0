/* error_fit.c - geometric means of both scales over their posterior distribution, on a grid of their
 * logarithms. */
#include "costmodels/error_fit.h"

#include <math.h>

enum { FREEDOM = 4, POINTS = 41 };

/* 0.95 quantile of Student's t with 4 degrees of freedom, divided by that of the normal distribution
 * (standard tables). */
static const double OF_NORMAL = 2.1318 / 1.6449;

/* Log-normal priors of the two scales: medians, and deviations of their logarithms. Half of the errors in
 * docs/measurements.md are within 4 %, which is 0.74 scales. Messages and wake-ups take tens of microseconds,
 * and a step has a few of them. */
static const double RELATIVE = 0.05, RELATIVE_SPREAD = 0.4, SECONDS = 1e-4, SECONDS_SPREAD = 1.5;

const hp_step_error hp_error_prior = {0.065, 1.3e-4}; /* the medians, as deviations of a normal
                                                       * distribution */

/* Value of grid point i, from -3 to 3 deviations. */
static double deviate(int i) {
    return 6.0 * i / (POINTS - 1) - 3;
}

static double log_likelihood(const hp_held *held, int n, double relative, double seconds) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double scale = hypot(relative, seconds / held[i].step_s), e = held[i].log_error / scale;
        sum -= log(scale) + (FREEDOM + 1) / 2.0 * log1p(e * e / FREEDOM);
    }
    return sum;
}

/* Computes the weights of all points; the largest is 1. */
static void weigh(const hp_held *held, int n, double weight[POINTS][POINTS]) {
    double most = -INFINITY;
    for (int r = 0; r < POINTS; r++)
        for (int s = 0; s < POINTS; s++) {
            const double x = deviate(r), y = deviate(s);
            weight[r][s] = log_likelihood(held, n, RELATIVE * exp(RELATIVE_SPREAD * x),
                                          SECONDS * exp(SECONDS_SPREAD * y)) -
                           (x * x + y * y) / 2;
            most = fmax(most, weight[r][s]);
        }
    for (int r = 0; r < POINTS; r++)
        for (int s = 0; s < POINTS; s++) weight[r][s] = exp(weight[r][s] - most);
}

hp_step_error hp_error_fit(const hp_held *held, int n) {
    double weight[POINTS][POINTS], sum = 0, relative = 0, seconds = 0;
    weigh(held, n, weight);
    for (int r = 0; r < POINTS; r++)
        for (int s = 0; s < POINTS; s++) {
            sum += weight[r][s];
            relative += weight[r][s] * deviate(r);
            seconds += weight[r][s] * deviate(s);
        }
    return (hp_step_error){OF_NORMAL * RELATIVE * exp(RELATIVE_SPREAD * relative / sum),
                           OF_NORMAL * SECONDS * exp(SECONDS_SPREAD * seconds / sum)};
}

double hp_error_at(const hp_step_error *e, double step_s) {
    return step_s > 0 ? hypot(e->relative, e->seconds / step_s) : e->relative;
}
