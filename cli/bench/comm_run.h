/* comm_run.h - runs `hplan-exec --bench-comm` on its ranks and collects the output into one object. */
#ifndef HP_COMM_RUN_H
#define HP_COMM_RUN_H

#include "base/arena.h"
#include "base/status.h"

#include <jansson.h>
#include <stdint.h>

typedef struct comm_request {
    const char *series; /* comm_series_list */
    const char *dtype, *reduction, *hostfile, *launcher;
    int64_t ranks, root, per_node;
    int64_t from_bytes, to_bytes, factor, iterations, warmup, turns;
} comm_request;

/* *result: as docs/commands.md describes `bench comm --json`; the caller releases it. Errors: those of
 * cli_launch_run; HP_EINTERNAL (invalid output). */
hp_status comm_run(hp_arena *arena, const comm_request *r, json_t **result, hp_error *err);

/* Adds bytes per second, and nccl-tests' bus bandwidth, to an object with `time_s`. */
void comm_add_rates(json_t *times, const char *op, double bytes, int32_t ranks);

#endif
