/* jitter_fit.h - the speed of a core as a stationary process with exponential autocorrelation
 * (Ornstein-Uhlenbeck): coefficient of variation and correlation time, from readings at irregular times. */
#ifndef HP_JITTER_FIT_H
#define HP_JITTER_FIT_H

typedef struct hp_jitter_reading {
    int series;        /* readings of one series are in time order */
    double t_s, value; /* value: relative to the series' mean */
} hp_jitter_reading;

typedef struct hp_core_jitter {
    double cv, tau_s; /* 0: no correlation found */
} hp_core_jitter;

/* Fits the autocorrelation over lags by least squares (Box & Jenkins 1976, ch. 2): variance * a * exp(-lag /
 * tau), a <= 1. Variation that decays within the shortest lag is not part of the process. */
hp_core_jitter hp_jitter_fit(const hp_jitter_reading *reading, int n);

/* Variance of the mean over a time x * tau, for a process with variance 1 (Papoulis 1965): 2 (x - 1 +
 * exp(-x)) / x^2. */
double hp_jitter_averaged(double x);

#endif
