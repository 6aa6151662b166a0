/* periods.h - repeating micro-batches are simulated once.
 *
 * Suppose that the state of all ranks equals an earlier one, except that tasks are the same number of places
 * further in their queues, and that the coming tasks repeat too. Then everything in between happens again,
 * nanosecond by nanosecond, and whole periods are skipped. */
#ifndef HP_PERIODS_H
#define HP_PERIODS_H

#include "sim/engine/state.h"

/* Returns NULL if it does not pay, if times differ between tasks (jitter), or if spans are wanted. */
sim_periods *sim_periods_new(sim *s);
/* A rank starts a compute task. */
void sim_periods_note(sim *s, int rank, int task);
/* Time is about to move on, and everything that could start has started. */
void sim_periods_look(sim *s);

/* Number of tasks skipped. */
int64_t sim_periods_passed(const sim_periods *p);

#endif
