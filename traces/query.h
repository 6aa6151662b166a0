/* query.h - a recorded run in memory: the input of every comparison, check, plot and export. */
#ifndef HP_QUERY_H
#define HP_QUERY_H

#include "base/arena.h"
#include "traces/trace.h"

enum { HP_TRACE_NEWEST = 512 }; /* iterations kept: enough for any median, and a limit on memory */

typedef struct hp_trace_task {
    int32_t role, task;
    int32_t op;               /* hp_task_op */
    int32_t phase;            /* hp_phase */
    int32_t queue;            /* hp_queue_kind */
    const char *kind, *label; /* "fwd.conv"; "fwd layer1.0.conv1 m2" (cleaned: hp_text_clean) */
    int64_t bytes;            /* moved between ranks */
    int32_t meeting;          /* tasks with equal numbers meet (meetings.h); -1: it meets none */
    bool world;               /* spans all replicas */
} hp_trace_task;

typedef struct hp_trace_span {
    int32_t rank, iter;
    int32_t task;      /* index into hp_trace.task; -1: a task of the evaluation program */
    int32_t eval_task; /* its id there */
    int64_t t0_ns, t1_ns;
} hp_trace_span;

typedef struct hp_trace_iter {
    int32_t iter;
    int64_t first, last;  /* spans first .. last-1 */
    int64_t t0_ns, t1_ns; /* earliest start, latest end */
    double step_s;        /* the step_s counter (largest over ranks) if recorded, else t1 - t0 */
} hp_trace_iter;

typedef struct hp_trace {
    int64_t run;
    const char *kind, *plan_hash, *strategy, *machine, *device, *version, *host, *processor; /* cleaned */
    int32_t ranks, status;
    int32_t n_rank; /* ranks that recorded spans; a folded simulation has one per role */
    int32_t n_role, n_task;
    int32_t *role_ranks; /* per role: number of recording ranks */
    hp_trace_task *task;
    int64_t n_span;
    hp_trace_span *span; /* by iteration, rank, start */
    int32_t n_iter;
    hp_trace_iter *iter; /* complete iterations only (every rank recorded every task), oldest first */
    int32_t n_partial;   /* incomplete iterations, which are left out */
} hp_trace;

/* Loads the newest iterations of a run. Evaluation steps (iter < 0) only if `with_eval`; they are never in
 * `iter`. Errors: HP_EDATA: no such run, spans of unknown tasks, impossible numbers. */
hp_status hp_trace_load(hp_arena *arena, hp_db *db, int64_t run, bool with_eval, hp_trace *t, hp_error *err);

/* Drops step 0 (warm-up) if at least 3 are complete; drops none from a long run whose first steps were not
 * loaded. Returns the number dropped, 0 or 1. */
int hp_trace_drop_warmup(hp_trace *t);

/* Median; sorts `v`. NaN if n is 0. */
double hp_median(double *v, int64_t n);

/* Step times of the complete iterations, seconds: n_iter values. */
double *hp_trace_steps(hp_arena *arena, const hp_trace *t);

/* For each recording rank and task of its role: the median duration over the iterations. */
typedef struct hp_trace_median {
    int32_t rank, task; /* task: index into hp_trace.task */
    double seconds;
} hp_trace_median;
hp_trace_median *hp_trace_medians(hp_arena *arena, const hp_trace *t, int64_t *n);

/* (n_iter, n_group) matrix: seconds per iteration spent in the tasks of a group, summed over tasks, mean over
 * the recording ranks. group: per task, its group or -1. */
double *hp_trace_totals(hp_arena *arena, const hp_trace *t, const int32_t *group, int n_group);

/* Step time minus the time the compute queue was busy, mean over ranks, per iteration: n_iter values,
 * seconds. */
double *hp_trace_waiting(hp_arena *arena, const hp_trace *t);

/* For each span of an iteration: the time at which all that it meets had started, at the earliest its own
 * start. Until then it waited. A span that ended before did not wait for the others (a message sent ahead)
 * and gets its own start. */
int64_t *hp_trace_met(hp_arena *arena, const hp_trace *t, const hp_trace_iter *it);

/* A value of a counter; values are sorted by iteration, rank, time. value NaN: recorded as NaN. */
typedef struct hp_trace_value {
    int32_t rank, iter;
    int64_t t_ns;
    double value;
} hp_trace_value;
hp_status hp_trace_counter(hp_arena *arena, hp_db *db, int64_t run, const char *name, hp_trace_value **v,
                           int64_t *n, hp_error *err);

/* Newest simulated and executed run of a file, the simulated one preferably of the same plan; -1: none. */
hp_status hp_trace_find_pair(hp_db *db, int64_t *sim, int64_t *exec, hp_error *err);

#endif
