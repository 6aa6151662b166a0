/* bench.h - times collectives and messages of every requested back end, and checks what they deliver:
 * `hplan-exec --bench-comm`. Needs no plan.
 *
 * Two modes follow two conventions. `pipelined` runs iterations back to back, as nccl-tests does;
 * `barriered` puts a barrier before each, as the OSU micro-benchmarks do. Both are measured, out of
 * place and in place. */
#ifndef HP_BENCH_H
#define HP_BENCH_H

#include "exec/yardstick/wait.h"

typedef struct hp_bench_request {
    const char *series; /* "allreduce:own.ring,allreduce:mpi,sendrecv:mpi": operation, back end, algorithm */
    const char *dtype, *reduction;
    int64_t from_bytes, to_bytes, factor; /* bytes of the whole data, as hp_collective_data.count;
                                           * steps by the factor */
    int64_t iterations, warmup, turns;    /* iterations and warm-ups per turn */
    int32_t root, per_node;               /* per_node: as hp_collective_case; 0: all ranks are on one node */
} hp_bench_request;

/* Times each series once at every size before any series gets its next turn, so that disturbances affect all
 * alike. Rank 0 prints JSON objects, one per line:
 *   first, lists by rank: {"library":"Open MPI v4.1.4","hosts":["a","a"],"pids":[71,72]}
 *   progress: {"done":3,"of":60}
 *   a result: {"op":"allreduce","backend":"own","algorithm":"ring","mode":"pipelined",
 *    "row":{"bytes":8,"count":2,"time_s":..,"min_s":..,"median_s":..,"p99_s":..,"max_s":..,"turns_s":[..],
 *    "wrong":0,"in_place":{"time_s":.., as before}}}
 *   last, as hp_yard_survey_answer: {"yardsticks":..,"availability":..}
 * `count`: elements of the whole data; `algorithm`: null where the back end chooses; `wrong`: null where
 * nothing can be wrong or detected. `crowded`: ranks share cores, so they yield while they wait. Closes the
 * communicator unless it fails. Collective: over all ranks. Errors: HP_EUSAGE, HP_ESTALL, 128+n after a
 * signal, HP_EPLAN (memory), HP_EIO, the communicator's. */
hp_status hp_bench_comm(const hp_bench_request *r, const hp_yard_waiter *w, bool crowded, hp_error *err);

#endif
