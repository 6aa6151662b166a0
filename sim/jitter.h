/* jitter.h - compute tasks that take now longer, now shorter: log-normal with mean 1, so that no task takes negative
 * time; and what that does to ranks that wait for each other but are simulated as one. */
#ifndef HP_SIM_JITTER_H
#define HP_SIM_JITTER_H

#include <stdint.h>

/* A draw with this coefficient of variation, of a rank's task. */
double hp_jitter(double cv, uint64_t seed, int rank, int task);

/* The expected maximum of n such draws, by quadrature of n phi(z) Phi(z)^(n-1) exp(sigma z - sigma^2/2) (order
 * statistics: David & Nagaraja 2003, section 2.1; of n = 2: 2 Phi(sigma/sqrt 2)). n >= 1. */
double hp_jitter_max(double cv, int n);

#endif
