/* calibrate_need.h - what a search needs to know about a machine: the compute tasks of its best candidates,
 * their shares of the step, and their uncertainty. */
#ifndef HP_CALIBRATE_NEED_H
#define HP_CALIBRATE_NEED_H

#include "cli/options/simulate.h"

/* Tasks of one shape and size. */
typedef struct calibrate_need {
    hp_work work;
    double weight; /* fraction of a candidate's compute time, averaged over candidates */
    double error;  /* relative half-width of the table's interval */
} calibrate_need;

typedef struct calibrate_candidate {
    hp_strategy strategy; /* with its cut */
    int64_t micro_batch;  /* samples */
    int64_t batch;        /* global */
} calibrate_candidate;

typedef struct calibrate_needs {
    int n;
    calibrate_need *need; /* by key and size */
    int n_candidate;
    calibrate_candidate *candidate;
    int64_t most_bytes; /* largest message or collective in bytes; 0: there is none */
} calibrate_needs;

/* Searches with the current table: the best candidates, at least one of each family. Lives in `arena`.
 * Errors: those of the search; HP_EPLAN if nothing fits. */
hp_status calibrate_needs_find(hp_arena *arena, simulate_setup *s, calibrate_needs *needs, hp_error *err);

/* The compute tasks of a program, one entry per shape and size, sorted by key and size; weight: seconds by
 * the table. Also updates most_bytes with its messages. */
hp_status calibrate_needs_of(hp_arena *arena, const hp_plan *plan, const hp_cost_table *t,
                             calibrate_needs *out, hp_error *err);

/* Recomputes the errors with another table. Returns their weighted mean: the expected error of a step. */
double calibrate_needs_update(calibrate_needs *needs, const hp_cost_table *t, const hp_machine *m);

/* By key, then size. */
int calibrate_need_compare(const void *a, const void *b);

#endif
