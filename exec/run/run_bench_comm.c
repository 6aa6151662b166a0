/* run_bench_comm.c - see run_bench_comm.h. */
#include "exec/run/run_bench_comm.h"

#include "exec/run/run_bind.h"

hp_status hp_run_bench_comm(const hp_exec_options *options, const hp_yard_waiter *w, hp_error *err) {
    hp_bound_cores bound;
    HP_TRY(hp_bind_rank(w->comm, (int)options->threads, options->machine.bind, &bound, err));
    return hp_bench_comm(&options->bench, w, bound.crowded, err);
}
