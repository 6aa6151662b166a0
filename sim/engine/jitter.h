/* jitter.h - random durations of compute tasks, log-normal with mean 1 (so no task takes negative time), and
 * their effect on folded ranks that wait for each other.
 *
 * Other work on a shared machine causes two kinds: the slowness of a core, which persists for a while (a
 * stationary Gaussian process with exponential correlation, Ornstein and Uhlenbeck 1930, in the logarithm of
 * the time), and the variation of each task by itself. */
#ifndef HP_JITTER_H
#define HP_JITTER_H

#include <stdbool.h>
#include <stdint.h>

/* Parameters of the jitter; all 0: none. */
typedef struct hp_jitter_process {
    double cv;    /* coefficient of variation of a core's slowness at an instant */
    double tau_s; /* its correlation time */
    double task;  /* coefficient of variation of each task by itself */
} hp_jitter_process;

static inline bool hp_jitters(const hp_jitter_process *p) {
    return p->cv > 0 || p->task > 0;
}

/* Which draws to take. Mirrored ones have the opposite sign: pairs cancel everything in the mean of
 * logarithms that is linear in the draws (antithetic variates: Hammersley and Morton 1956). */
typedef struct hp_draws {
    uint64_t seed;
    bool mirrored;
} hp_draws;

/* The draw for a rank's task, with this coefficient of variation. */
double hp_jitter(double cv, hp_draws d, int rank, int task);

/* A core: the state of its process when last observed. Initially all 0. */
typedef struct hp_core {
    double level; /* standard normal */
    int64_t seen_ns;
    bool begun;
} hp_core;

/* Factor by which work of `seconds` takes longer if a core begins it at now_ns, no earlier than the end of
 * its last work. It is the process's mean over the task, with mean 1; end and integral are drawn together
 * (Gillespie 1996). */
double hp_core_slowness(hp_core *c, const hp_jitter_process *p, hp_draws d, int rank, int task,
                        int64_t now_ns, double seconds);

/* Coefficient of variation of a sequence of tasks, from the sum of their seconds and the sum of squares. */
double hp_jitter_of_sum(const hp_jitter_process *p, double seconds, double squares);

/* Expected maximum of n such draws, by quadrature of n phi(z) Phi(z)^(n-1) exp(sigma z - sigma^2/2) (order
 * statistics: David & Nagaraja 2003, section 2.1; for n = 2: 2 Phi(sigma/sqrt 2)). n >= 1. */
double hp_jitter_max(double cv, int n);

#endif
