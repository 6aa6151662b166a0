/* jitter_fit.h - the speed of a core as a stationary process with an exponential autocorrelation (Ornstein-Uhlenbeck):
 * coefficient of variation and correlation time, from readings at irregular times. */
#ifndef HP_JITTER_FIT_H
#define HP_JITTER_FIT_H

typedef struct hp_jitter_reading {
    int series;        /* readings of one series are in order of time */
    double t_s, value; /* value: relative to the series' mean */
} hp_jitter_reading;

typedef struct hp_core_jitter {
    double cv, tau_s; /* 0: no correlation was found */
} hp_core_jitter;

/* Least squares of the autocorrelation over lags (Box & Jenkins 1976, ch. 2): variance * a * exp(-lag / tau), a <= 1;
 * what decays faster than the shortest lag is not part of the process. */
hp_core_jitter hp_jitter_fit(const hp_jitter_reading *reading, int n);

/* Variance of the mean over a time x * tau of a process with variance 1 (Papoulis 1965): 2 (x - 1 + exp(-x)) / x^2. */
double hp_jitter_averaged(double x);

#endif
