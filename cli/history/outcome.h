/* outcome.h - a finished run's predicted and measured time, and the machine's speed: the last line of `run`,
 * its JSON, and the row of the history. */
#ifndef HP_OUTCOME_H
#define HP_OUTCOME_H

#include "cli/history/history_speed.h"

typedef struct run_outcome {
    bool warm;                     /* the steps do not begin with the warm-up; those of a run of fewer than 3
                                    * do */
    bool known;                    /* false: the trace contains no complete step */
    int steps;                     /* without warm-up: those that `compare` counts */
    double measured_s;             /* their median */
    double predicted_s;            /* the plan's */
    double low_s, high_s, quiet_s; /* NaN: not predicted */
    const char *cost, *cost_hash, *cost_processor;
    run_speed speed;
} run_outcome;

/* Reads a plan's recorded run from a file. Texts live in `arena`. Errors: HP_EDATA. */
hp_status run_outcome_read(hp_arena *arena, const hp_plan *plan, const char *path, run_outcome *out,
                           hp_error *err);

/* "step 12.5 ms measured (median), 10.2 ms predicted (9.6 ms to 11 ms); the machine was 18% slower than
 * predicted for: 3% off at equal speed" */
enum { RUN_OUTCOME_TEXT = 400 };
const char *run_outcome_text(const run_outcome *r, char out[RUN_OUTCOME_TEXT]);
/* Adds step_s, predicted_s, predicted_low_s, predicted_high_s, predicted_quiet_s and speed to an object. */
void run_outcome_json(const run_outcome *r, json_t *o);

#endif
