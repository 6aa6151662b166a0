/* trace.h - runs, tasks, spans and counters in SQLite: the same tables for the simulator and the executor. */
#ifndef HP_TRACE_H
#define HP_TRACE_H

#include "base/db.h"
#include "plan/program/program.h"
#include "traces/trace_ring.h"

typedef struct hp_run_info {
    const char *kind; /* "sim" or "exec" */
    const char *plan_hash, *strategy, *machine, *device;
    uint64_t seed;
    int ranks;
} hp_run_info;

/* Inserts the run and one row per (role, task) of its program; *run is its id. The row's op is "fwd.conv":
 * opcode, dot, operator of the layer (for compute tasks of a layer; otherwise only the opcode). A simulation
 * has no date, host or processor, so that equal inputs give equal files; a run has those of this machine. */
hp_status hp_trace_begin(hp_db *db, const hp_run_info *info, const hp_program *p, const hp_graph *g,
                         int64_t *run, hp_error *err);
/* Adds a rank's spans; samples likewise. Errors: HP_EIO. */
hp_status hp_trace_spans(hp_db *db, int64_t run, int rank, int role, const hp_span *span, int64_t n,
                         hp_error *err);
hp_status hp_trace_samples(hp_db *db, int64_t run, int rank, const hp_sample *sample, int64_t n,
                           hp_error *err);
/* Records the run's exit status. */
hp_status hp_trace_end(hp_db *db, int64_t run, int status, hp_error *err);

/* Merges every ring file `dir`/rank-N.ring, N < ranks, into the run; skips and counts missing
 * or truncated rings. */
hp_status hp_trace_merge(hp_db *db, int64_t run, const char *dir, int ranks, int *missing, hp_error *err);

/* Newest run of a kind; *run = -1: none. */
hp_status hp_trace_find(hp_db *db, const char *kind, int64_t *run, hp_error *err);

#endif
