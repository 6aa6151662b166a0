/* error_fit.h - how far off predictions of a step are: a part of it, and seconds that its tasks do not account for. */
#ifndef HP_ERROR_FIT_H
#define HP_ERROR_FIT_H

/* A run that fed no row: the logarithm of its measured over its predicted step, which took so long. */
typedef struct hp_held {
    double log_error, step_s;
} hp_held;

/* Of the logarithm of a step: standard deviation of a normal distribution whose 90 % interval is that of the errors. */
typedef struct hp_step_error {
    double relative; /* of steps that are long */
    double seconds;  /* of any step: a step of that length is wrong by its own length */
} hp_step_error;

/* Of a table that nothing was held against. */
extern const hp_step_error hp_error_prior;

/* From n runs, drawn towards the prior. One run that is far off widens it little: errors are taken as distributed like
 * Student's t with 4 degrees of freedom (Lange, Little, Taylor 1989). */
hp_step_error hp_error_fit(const hp_held *held, int n);

double hp_error_at(const hp_step_error *e, double step_s);

#endif
