/* calibrate_need.h - what a search has to know of a machine: the compute tasks of its best candidates, how much of their
 * steps each takes, and how uncertain it is. */
#ifndef HP_CALIBRATE_NEED_H
#define HP_CALIBRATE_NEED_H

#include "cli/options/simulate.h"

/* Tasks of one shape and size. */
typedef struct calibrate_need {
    hp_work work;
    double weight; /* part of a candidate's compute time, the mean over candidates */
    double error;  /* relative half-width of what the table says */
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
    int64_t most_bytes; /* of a message or collective; 0: there is none */
} calibrate_needs;

/* Searches with the table at hand: the best candidates, one of each family at least. Lives in `arena`. Errors: those of
 * the search; HP_EPLAN where nothing fits. */
hp_status calibrate_needs_find(hp_arena *arena, simulate_setup *s, calibrate_needs *needs, hp_error *err);

/* The compute tasks of a program, of each shape and size once, by key and size; weight: seconds by the table. Messages are
 * added to most_bytes. */
hp_status calibrate_needs_of(hp_arena *arena, const hp_plan *plan, const hp_cost_table *t,
                             calibrate_needs *out, hp_error *err);

/* Sets the errors anew, by another table. Returns their weighted mean: how far off a step is expected to be. */
double calibrate_needs_update(calibrate_needs *needs, const hp_cost_table *t, const hp_machine *m);

/* By key, then size. */
int calibrate_need_compare(const void *a, const void *b);

#endif
