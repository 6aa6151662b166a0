/* jitter.h - compute tasks that take now longer, now shorter: log-normal with mean 1, so that no task takes negative
 * time; and what that does to ranks that wait for each other but are simulated as one.
 *
 * Two kinds, as other work on a shared machine makes them: the slowness of a core, which stays for a while (a
 * stationary Gaussian process with exponential correlation, Ornstein and Uhlenbeck 1930, in the logarithm of the time
 * that work takes), and what each task has by itself. */
#ifndef HP_JITTER_H
#define HP_JITTER_H

#include <stdbool.h>
#include <stdint.h>

/* What is drawn from; all 0: nothing. */
typedef struct hp_jitter_process {
    double cv;    /* coefficient of variation of a core's slowness at an instant */
    double tau_s; /* its correlation time */
    double task;  /* coefficient of variation of each task by itself */
} hp_jitter_process;

static inline bool hp_jitters(const hp_jitter_process *p) {
    return p->cv > 0 || p->task > 0;
}

/* Which draws. Mirrored ones have the other sign: half as many pairs leave the mean of logarithms free of all that is
 * linear in the draws (antithetic variates: Hammersley and Morton 1956). */
typedef struct hp_draws {
    uint64_t seed;
    bool mirrored;
} hp_draws;

/* A draw with this coefficient of variation, of a rank's task. */
double hp_jitter(double cv, hp_draws d, int rank, int task);

/* A core: its process where it was last looked at. All 0 at the beginning. */
typedef struct hp_core {
    double level; /* standard normal */
    int64_t seen_ns;
    bool begun;
} hp_core;

/* How much longer work of `seconds` takes that a core begins at now_ns, which is not before the end of what it had
 * last: the process' mean over the task (its end and its integral are drawn together, Gillespie 1996), mean 1. */
double hp_core_slowness(hp_core *c, const hp_jitter_process *p, hp_draws d, int rank, int task,
                        int64_t now_ns, double seconds);

/* Coefficient of variation of a sum of tasks that run one after another: their seconds, added and squared and added. */
double hp_jitter_of_sum(const hp_jitter_process *p, double seconds, double squares);

/* The expected maximum of n such draws, by quadrature of n phi(z) Phi(z)^(n-1) exp(sigma z - sigma^2/2) (order
 * statistics: David & Nagaraja 2003, section 2.1; of n = 2: 2 Phi(sigma/sqrt 2)). n >= 1. */
double hp_jitter_max(double cv, int n);

#endif
