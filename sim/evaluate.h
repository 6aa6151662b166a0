/* evaluate.h - one strategy to its predicted figures: legality, memory, time. What the search calls for each
 * candidate, `simulate --strategy` for one, and `run` when a stored plan has to be rebuilt for another device
 * or candidate. */
#ifndef HP_SIM_EVALUATE_H
#define HP_SIM_EVALUATE_H

#include "plan/store.h"
#include "sim/costs.h"

typedef struct hp_eval_setup {
    const hp_graph *graph;
    const hp_machine *machine;
    const hp_cost_table *table;
    hp_mode mode;
    hp_dtype dtype;
    int64_t batch;        /* global */
    int64_t memory_limit; /* bytes of one rank, 0 = the device's */
    bool no_fold;
    double jitter_cv;
    int straggler_rank; /* -1 = none */
    double straggler_factor;
    uint64_t seed;
} hp_eval_setup;

typedef struct hp_eval hp_eval;
hp_eval *hp_eval_new(hp_arena *arena, const hp_eval_setup *setup);
const hp_eval_setup *hp_eval_get(const hp_eval *e);

/* What the units of the network take for one micro-batch; n_unit entries each, seconds; kept per micro-batch
 * size. */
typedef struct hp_unit_costs {
    int64_t micro_batch;
    double *total;                        /* forward + backward: what balanced cuts balance */
    double *forward_high, *backward_high; /* upper ends: for bounds on the upper end of a step */
} hp_unit_costs;
hp_status hp_eval_units(hp_eval *e, int64_t micro_batch, const hp_unit_costs **units, hp_error *err);
/* The cost vector of a strategy's balanced cuts, as hp_lower_options.unit_cost and hp_plan_build take it. */
hp_status hp_eval_unit_cost(hp_eval *e, const hp_strategy *s, const double **unit_cost, hp_error *err);

typedef struct hp_evaluation {
    hp_strategy strategy;
    hp_reject reject; /* code NULL = feasible */
    hp_candidate figures;
    int64_t *memory_by_role; /* stages entries: planned peak, or its lower bound when nothing was placed */
} hp_evaluation;

/* A lower bound on the upper end of the step, without lowering: no simulation of the strategy is faster. */
hp_status hp_eval_bound(hp_eval *e, const hp_strategy *s, double *seconds, hp_error *err);

/* Evaluates a strategy; an infeasible one is a value (reject.code), not an error. placed: with memory offsets
 * (exact peak), else the most bytes alive at once. Results live in `arena`. */
hp_status hp_evaluate(hp_eval *e, hp_arena *arena, const hp_strategy *s, bool placed, hp_evaluation *out,
                      hp_error *err);
/* Just legality and memory. */
hp_status hp_eval_feasible(hp_eval *e, hp_arena *arena, const hp_strategy *s, bool placed, hp_evaluation *out,
                           hp_error *err);

/* The predicted trace of a lowered program. Every rank is simulated when their spans are few, else one
 * replica. */
hp_status hp_eval_trace(hp_eval *e, hp_arena *arena, const hp_program *p, hp_sim_result *result,
                        hp_error *err);

#endif
