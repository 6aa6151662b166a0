/* fit.h - fits of measurements, with GSL. */
#ifndef HP_FIT_H
#define HP_FIT_H

#include <stdbool.h>

typedef struct hp_fit_sample {
    double flops, bytes, seconds;
} hp_fit_sample;

typedef struct hp_fit {
    double launch_s;
    double flops_per_s, bytes_per_s; /* 0: the term is absent */
    double residual;                 /* median relative error */
} hp_fit;

/* t = launch + flops/R + bytes/B with no negative term, minimising robustly weighted relative errors. False
 * for fewer than 3 samples. */
bool hp_fit_work(const hp_fit_sample *sample, int n, hp_fit *fit);

/* t = alpha + beta bytes, weighted by 1/t^2 (relative errors), neither negative; false for fewer than 2
 * points. */
bool hp_fit_alpha_beta(const double *bytes, const double *seconds, int n, double *alpha_s,
                       double *beta_s_per_byte);

#endif
