/* bench.h - times collectives and messages, every one by every back end that is asked for, and checks what they deliver:
 * `hplan-exec --bench-comm`. No plan is needed.
 *
 * Two modes, as the two customs differ: `pipelined`, iterations back to back, as nccl-tests does;
 * `barriered`, a barrier before each, as the OSU micro-benchmarks do. Both are measured, out of place and in place. */
#ifndef HP_BENCH_H
#define HP_BENCH_H

#include "exec/yardstick/wait.h"

typedef struct hp_bench_request {
    const char *series; /* "allreduce:own.ring,allreduce:mpi,sendrecv:mpi": operation, back end, algorithm */
    const char *dtype, *reduction;
    int64_t from_bytes, to_bytes, factor; /* sizes of the whole data, as hp_collective_data.count */
    int64_t iterations, warmup, turns;    /* iterations and warm-ups of each turn */
    int32_t root, per_node;               /* per_node: as hp_collective_case; 0: all ranks are on one node */
} hp_bench_request;

/* Every series has its turn at every size before any has the next, so that what disturbs the machine disturbs all alike.
 * Rank 0 prints JSON objects, one a line:
 *   {"library":"Open MPI v4.1.4","hosts":["a","a"],"pids":[71,72]}   first; by rank
 *   {"done":3,"of":60}                                               while it goes on
 *   {"op":"allreduce","backend":"own","algorithm":"ring","mode":"pipelined","row":{"bytes":8,"count":2,"time_s":..,"min_s":..,
 *    "median_s":..,"p99_s":..,"max_s":..,"turns_s":[..],"wrong":0,"in_place":{"time_s":.., as before}}}
 *   {"yardsticks":..,"availability":..}                              last; as hp_yard_survey_answer
 * `count` is elements of the whole data, `algorithm` null where it is left to the back end, `wrong` null where nothing can be
 * wrong or seen. `crowded`: ranks share cores and give them away while they wait. Closes
 * the communicator, unless it fails. Collective: over all ranks. Errors: HP_EUSAGE, HP_ESTALL, 128+n after a signal,
 * HP_EPLAN (memory), HP_EIO, the communicator's. */
hp_status hp_bench_comm(const hp_bench_request *r, const hp_yard_waiter *w, bool crowded, hp_error *err);

#endif
