/* cost_fit.h - fits of measurements, with GSL. */
#ifndef HP_COST_FIT_H
#define HP_COST_FIT_H

#include <stdbool.h>

typedef struct hp_fit_sample {
    double flops, bytes, seconds;
    /* Seconds before conversion to the quiet machine, a speed that was really reached; 0: as `seconds`. */
    double clock_s;
} hp_fit_sample;

typedef struct hp_fit {
    double launch_s;
    double flops_per_s, bytes_per_s;        /* 0: the term is absent */
    double bytes_least, bytes_most;         /* range of the samples */
    double intensity_least, intensity_most; /* flop/B of them */
    double fastest;                         /* flop/s that all but a twentieth of the samples stay below */
    double residual; /* 90 % of other tasks of such sizes are expected within this fraction of the fit */
} hp_fit;

/* Fits t = launch + flops/R + bytes/B without negative terms, minimising robustly weighted relative errors.
 * With few sizes, the samples do not show all of the error: the residual grows with the number of terms
 * fitted. Returns false for fewer than 3 samples, or fewer sizes than terms. */
bool hp_fit_work(const hp_fit_sample *sample, int n, hp_fit *fit);

/* Fits t = alpha + beta bytes, weighted by 1/t^2 (relative errors), neither negative; false for fewer than 2
 * points. */
bool hp_fit_alpha_beta(const double *bytes, const double *seconds, int n, double *alpha_s,
                       double *beta_s_per_byte);

#endif
