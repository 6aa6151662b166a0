/* sampler.h - samples the yardsticks between a run's steps, on all ranks at the same time: what ranks of one node do to
 * each other while they compute they also do to the kernels.
 *
 * Rank 0 decides (budget.h) and tells the others with the exchange that lines the ranks up before a burst; a second
 * one lines them up after it, so that the next step begins on all ranks at once, and tells them after which step the
 * next burst comes. Steps between bursts cost nothing. */
#ifndef HP_SAMPLER_H
#define HP_SAMPLER_H

#include "exec/interp/exec_clock.h"
#include "exec/yardstick/wait.h"
#include "exec/yardstick/yardstick.h"

typedef struct hp_sampler hp_sampler;

typedef struct hp_sampler_config {
    hp_comm *comm;
    const hp_clock *clock;
    hp_ring *ring; /* where samples go; not NULL */
    hp_watch *watch;
    const volatile sig_atomic_t *stop;
    double start_s; /* when the run began, of hp_now_s: a share of the time since then may be spent */
} hp_sampler_config;

/* Copies the config. Collective: no. */
hp_sampler *hp_sampler_open(const hp_sampler_config *config);
void hp_sampler_close(hp_sampler *s); /* NULL is fine */
int64_t hp_sampler_bytes(const hp_sampler *s);
int64_t hp_sampler_sent_bytes(
    const hp_sampler *s); /* by this rank, in its bursts: the communicator counts them too */

/* Between steps, after `steps` of them; `last`: no step follows. Before the first step, after the last, and when the
 * budget allows in between, takes a burst of samples and records them as of iteration steps - 1 (before the first step:
 * 0). `limit_s`: longest wait for another rank. Collective: over all ranks. Errors: as hp_yard_wait. */
hp_status hp_sampler_visit(hp_sampler *s, int64_t steps, bool last, double limit_s, hp_error *err);

#endif
