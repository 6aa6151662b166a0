/* calibrate_quick.h - calibration in a minute: measures what one search depends on, most used and most
 * uncertain first. */
#ifndef HP_CALIBRATE_QUICK_H
#define HP_CALIBRATE_QUICK_H

#include "cli/calibrate/calibrate_jobs.h"
#include "cli/calibrate/calibrate_need.h"

/* How a job is measured; `hplan calibrate` and tests implement this. */
typedef struct calibrate_measure {
    void *self;
    /* Runs the job and adds its samples. */
    hp_status (*run)(void *self, const calibrate_job *job, hp_error *err);
    /* The table of all samples so far. */
    hp_status (*table)(void *self, hp_cost_table **t, hp_error *err);
    /* Runs a strategy to compare it with its prediction; it feeds no row. NULL: not wanted. */
    hp_status (*hold)(void *self, const calibrate_job *job, hp_error *err);
} calibrate_measure;

typedef struct calibrate_outcome {
    int runs;
    double error;  /* expected relative error of the best candidates' steps, according to the table */
    bool finished; /* false: the time ran out */
} calibrate_outcome;

/* Runs jobs until the expected error is small and each was visited at least twice, at different times, or
 * until `seconds` are over. Always runs the first job. s: the search; its table avoids measuring known tasks
 * first. passes: over the messages' sizes; adds `messages` if there are any. Errors: those of the search and
 * of the jobs. */
hp_status calibrate_quick(hp_arena *arena, simulate_setup *s, const calibrate_jobs *messages, double seconds,
                          const calibrate_measure *measure, calibrate_outcome *out, hp_error *err);

#endif
