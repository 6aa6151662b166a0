/* periods.h - micro-batches that repeat are simulated once: when the state of all ranks equals an earlier one but for
 * tasks that are all the same number of places further in their queues, and the tasks to come repeat too, what
 * happened between the two happens again, nanosecond by nanosecond; whole periods are passed over. */
#ifndef HP_PERIODS_H
#define HP_PERIODS_H

#include <stdint.h>

typedef struct sim sim;
typedef struct sim_periods sim_periods;

/* NULL where it does not pay, or times differ from task to task (jitter), or spans are wanted. */
sim_periods *sim_periods_new(sim *s);
/* A rank starts a compute task. */
void sim_periods_note(sim *s, int rank, int task);
/* Time is about to move on, and all that could start has. */
void sim_periods_look(sim *s);

/* Tasks that were passed over. */
int64_t sim_periods_passed(const sim_periods *p);

#endif
