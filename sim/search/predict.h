/* predict.h - a plan with its prediction: programs, figures and simulated trace from the plan's scalar
 * fields. What `simulate` writes, and what `run` needs when a stored plan is to be run on another device or
 * as another candidate. */
#ifndef HP_PREDICT_H
#define HP_PREDICT_H

#include "sim/search/evaluate.h"

typedef struct hp_prediction {
    hp_eval_setup setup; /* what it rests on */
    hp_evaluation evaluation;
    hp_sim_result trace; /* with spans */
} hp_prediction;

/* From net, image, classes, mode, dtype, batch, seed, device, strategy and machine: fills the rest of the
 * plan (cut, graph, programs, step_s, hash) and the prediction. A strategy whose cut is written out keeps it.
 * setup: the cost table, limits, jitter and so on; what the plan says is taken from it
 * (hp_conditions_of_plan). Errors: HP_EPLAN with code, limit and fix for a strategy that is not legal or does not fit. */
hp_status hp_predict(hp_arena *arena, hp_plan *plan, const hp_eval_setup *setup, hp_prediction *out,
                     hp_error *err);

/* Of an inference plan that was built (hp_plan_build) and gets a program written by hand in the place of its own. Errors:
 * HP_EPLAN where its ranks do not fit in memory. */
hp_status hp_predict_program(hp_arena *arena, hp_plan *plan, hp_program *program, const hp_eval_setup *setup,
                             hp_prediction *out, hp_error *err);

/* Writes the plan, its simulated run (tasks, spans, memory over time) and what it rests on (conditions.h) into
 * a database that was just created. */
hp_status hp_predict_write(hp_db *db, const hp_plan *plan, const hp_prediction *p, hp_error *err);

/* The candidates that a plan was chosen from. */
typedef struct hp_ranking {
    const hp_candidate *candidate;
    int n;
    const hp_rejected *rejected;
    int n_rejected;
    const char *curves; /* which of them are a sweep's curves, for plots: docs/formats.md; NULL, "": none */
} hp_ranking;
/* A new plan.db, with its ranking unless that is NULL. Errors: HP_ECREATE, HP_EIO. */
hp_status hp_predict_store(const char *path, const hp_plan *plan, const hp_prediction *p, const hp_ranking *r,
                           hp_error *err);

#endif
