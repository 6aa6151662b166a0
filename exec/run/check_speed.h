/* check_speed.h - how fast this machine is now, without a plan: `hplan-exec --check-speed`. */
#ifndef HP_CHECK_SPEED_H
#define HP_CHECK_SPEED_H

#include "exec/run/options.h"
#include "exec/yardstick/wait.h"

/* Times the yardsticks on all ranks at the same time for options->seconds, bound to cores as ranks of a run
 * are. Rank 0 prints one JSON object:
 * {"schema":1,"ranks":2,"yardsticks":{"arith":{"quiet_s":6.5e-05,"mean_s":7.1e-05,"n":1800,
 * "work":7.68e+06,"unit":"flops"},...,"small":{...}},"availability":0.99,"yardstick_bytes":786432}. quiet_s
 * is the 5th percentile, work that of one sample, availability the share of its time in which a rank had a
 * processor; all are means over ranks, but messages, which are timed on rank 0. Closes the communicator,
 * unless it fails. Collective: over all ranks. Errors: as hp_yard_wait; HP_EIO. */
hp_status hp_check_speed(const hp_exec_options *options, const hp_yard_waiter *w, hp_error *err);

#endif
