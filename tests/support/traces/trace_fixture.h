/* trace_fixture.h - runs with known durations, written row by row: this layout is the oracle
 * of the trace tests.
 *
 * Two roles with the same seven tasks. The compute tasks of a rank are contiguous from the start of the
 * iteration; send, recv and all-reduce start with it and overlap them. Iterations are one second apart. */
#ifndef HP_TESTS_TRACE_FIXTURE_H
#define HP_TESTS_TRACE_FIXTURE_H

#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { FIXTURE_ROLES = 2, FIXTURE_TASKS = 7 };

typedef struct fixture_task {
    const char *op, *phase;
    bool compute;
} fixture_task;

extern const fixture_task fixture_tasks[FIXTURE_TASKS];

typedef int64_t fixture_duration(const void *self, int rank, int task, int iter); /* ns */

typedef struct fixture_run {
    const char *kind, *plan_hash, *strategy, *label; /* label: prefix of the tasks' labels */
    int ranks, span_ranks, iters; /* span_ranks: ranks that record (folded simulation: the roles) */
    fixture_duration *duration;
    const void *self;
} fixture_run;

void fixture_ok(hp_status status, const hp_error *err);

/* Equal up to a relative 1e-9, for sums in another order. */
void fixture_near(double have, double want);
void fixture_path(char *out, size_t n, const char *name);
int64_t fixture_add(hp_db *db, const fixture_run *r);
void fixture_sample(hp_db *db, int64_t run, int rank, int iter, hp_counter name, int64_t t_ns, double value);

#endif
