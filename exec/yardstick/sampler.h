/* sampler.h - samples the yardsticks between a run's steps, on all ranks at the same time. So ranks of one
 * node disturb each other's kernels as they do when they compute.
 *
 * Rank 0 decides (budget.h) and tells the others in the exchange that aligns the ranks before a burst. A
 * second exchange aligns them after it, so that the next step begins on all ranks at once, and tells them
 * after which step the next burst comes. Steps between bursts cost nothing. */
#ifndef HP_SAMPLER_H
#define HP_SAMPLER_H

#include "exec/interp/exec_clock.h"
#include "exec/yardstick/wait.h"
#include "exec/yardstick/yardstick.h"

typedef struct hp_sampler hp_sampler;

typedef struct hp_sampler_config {
    hp_comm *comm;
    const hp_clock *clock;
    hp_ring *ring; /* destination of the samples; not NULL */
    hp_watch *watch;
    const volatile sig_atomic_t *stop;
    double start_s; /* start of the run by hp_now_s: the budget is a share of the time since then */
} hp_sampler_config;

/* Copies the config. Collective: no. */
hp_sampler *hp_sampler_open(const hp_sampler_config *config);
void hp_sampler_close(hp_sampler *s); /* NULL is fine */
int64_t hp_sampler_bytes(const hp_sampler *s);
int64_t hp_sampler_sent_bytes(
    const hp_sampler *s); /* sent by this rank in its bursts, which the communicator counts too */

/* Called between steps, after `steps` of them; `last`: no step follows. Before the first step, after the
 * last, and when the budget allows in between, takes a burst of samples and records them for iteration steps
 * - 1 (before the first step: 0). `limit_s`: longest wait for another rank. Collective: over all ranks.
 * Errors: as hp_yard_wait. */
hp_status hp_sampler_visit(hp_sampler *s, int64_t steps, bool last, double limit_s, hp_error *err);

#endif
