/* run_bench_comm.h - times collectives and messages, without a plan: `hplan-exec --bench-comm`. */
#ifndef HP_RUN_BENCH_COMM_H
#define HP_RUN_BENCH_COMM_H

#include "exec/run/options.h"
#include "exec/yardstick/wait.h"

/* Runs exec/bench on ranks bound to cores as in a run. Closes the communicator, unless it fails. Collective:
 * over all ranks. Errors: as hp_bench_comm. */
hp_status hp_run_bench_comm(const hp_exec_options *options, const hp_yard_waiter *w, hp_error *err);

#endif
