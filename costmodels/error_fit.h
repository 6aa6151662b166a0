/* error_fit.h - prediction error of a step: a relative part, and seconds that its tasks do not account
 * for. */
#ifndef HP_ERROR_FIT_H
#define HP_ERROR_FIT_H

/* A run that fed no row: the duration of its measured step, and the logarithm of measured over predicted. */
typedef struct hp_held {
    double log_error, step_s;
} hp_held;

/* Error of the logarithm of a step: the standard deviation of a normal distribution with the same 90 %
 * interval. */
typedef struct hp_step_error {
    double relative; /* error of long steps */
    double seconds;  /* absolute error of any step: a step of this length is off by its own length */
} hp_step_error;

/* Error of a table that was never compared with measurements. */
extern const hp_step_error hp_error_prior;

/* Estimates the error from n runs, shrunk towards the prior. A single outlier widens it little: errors are
 * assumed to follow Student's t with 4 degrees of freedom (Lange, Little, Taylor 1989). */
hp_step_error hp_error_fit(const hp_held *held, int n);

double hp_error_at(const hp_step_error *e, double step_s);

#endif
