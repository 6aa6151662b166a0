/* predict.h - a plan with its prediction: programs, figures and simulated trace, built from the plan's scalar
 * fields. `simulate` writes it; `run` needs it to run a stored plan on another device or as another
 * candidate. */
#ifndef HP_PREDICT_H
#define HP_PREDICT_H

#include "sim/search/evaluate.h"

typedef struct hp_prediction {
    hp_eval_setup setup; /* conditions of the prediction */
    hp_evaluation evaluation;
    hp_sim_result trace; /* with spans */
} hp_prediction;

/* Fills the rest of a plan (cut, graph, programs, step_s, hash) and the prediction from net, image, classes,
 * mode, dtype, batch, seed, device, strategy and machine. Keeps a cut that is written out. setup: the cost
 * table, limits, jitter and so on; the plan overrides its fields (hp_conditions_of_plan). Errors: HP_EPLAN
 * with code, limit and fix for a strategy that is illegal or does not fit. */
hp_status hp_predict(hp_arena *arena, hp_plan *plan, const hp_eval_setup *setup, hp_prediction *out,
                     hp_error *err);

/* Predicts a hand-written program that replaces the program of a built inference plan (hp_plan_build).
 * Errors: HP_EPLAN if its ranks do not fit in memory. */
hp_status hp_predict_program(hp_arena *arena, hp_plan *plan, hp_program *program, const hp_eval_setup *setup,
                             hp_prediction *out, hp_error *err);

/* Writes the plan, its simulated run (tasks, spans, memory over time) and its conditions (conditions.h) into
 * a new database. */
hp_status hp_predict_write(hp_db *db, const hp_plan *plan, const hp_prediction *p, hp_error *err);

/* The candidates from which a plan was chosen. */
typedef struct hp_ranking {
    const hp_candidate *candidate;
    int n;
    const hp_rejected *rejected;
    int n_rejected;
    const char *curves; /* which of them form a sweep's curves, for plots: docs/formats.md; NULL, "": none */
} hp_ranking;
/* Writes a new plan.db, with the ranking unless it is NULL. Errors: HP_ECREATE, HP_EIO. */
hp_status hp_predict_store(const char *path, const hp_plan *plan, const hp_prediction *p, const hp_ranking *r,
                           hp_error *err);

#endif
