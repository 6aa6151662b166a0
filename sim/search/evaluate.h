/* evaluate.h - one strategy to its predicted figures: legality, memory, time. What the search calls for each
 * candidate, `simulate --strategy` for one, and `run` when a stored plan has to be rebuilt for another device
 * or candidate. */
#ifndef HP_EVALUATE_H
#define HP_EVALUATE_H

#include "plan/store/store.h"
#include "sim/interval.h"
#include "sim/memory/sim_memory_fit.h"
#include "sim/search/estimate.h"
#include "plan/lower/lower.h"

typedef struct hp_eval_setup {
    const hp_graph *graph;
    const hp_plan
        *plan; /* what the graph was built from, so that a fix may build another; NULL: it keeps it */
    const hp_machine *machine;
    const hp_cost_table *table;
    hp_mode mode;
    hp_dtype dtype;
    const hp_device_info *device;         /* that will run the plan; NULL: one that has every back end */
    int64_t batch;                        /* global */
    int64_t memory_limit;                 /* bytes of one rank, 0 = the device's */
    const struct hp_framework *framework; /* that runs it; NULL: hplan itself */
    bool eager;                           /* memory as an eager framework keeps it, not as planned */
    hp_rules rules;
    bool no_fold;
    double jitter_cv;   /* of each task, given by hand; 0: as the table says, below: none */
    int straggler_rank; /* -1 = none */
    double straggler_factor;
    uint64_t seed;
} hp_eval_setup;

/* Tasks of a program up to which others beside it are simulated for a hint or a refinement: larger ones take seconds each. */
enum { HP_TRIAL_TASKS = 200000 };

typedef struct hp_eval hp_eval;
hp_eval *hp_eval_new(hp_arena *arena, const hp_eval_setup *setup);
const hp_eval_setup *hp_eval_get(const hp_eval *e);
/* What comm=auto means, by the cost table. */
const hp_comm_table *hp_eval_comm(const hp_eval *e);

/* The cost vector of plain balanced cuts, as hp_lower_options.unit_cost and hp_plan_build take it: seconds
 * per unit and micro-batch. */
hp_status hp_eval_unit_cost(hp_eval *e, const hp_strategy *s, const double **unit_cost, hp_error *err);
/* What all units take on one device of that class for a micro-batch of the strategy, at full speed: one pass forward, and
 * backward in training. */
double hp_eval_class_seconds(hp_eval *e, const hp_strategy *s, int class);
/* Writes out the cut of a strategy that has none, where stages differ in width or memory decides; plain
 * balanced cuts stay as they are. */
void hp_eval_complete(hp_eval *e, hp_strategy *s, hp_cut_kind kind);

typedef struct hp_evaluation {
    hp_strategy strategy;
    hp_reject reject; /* HP_FEASIBLE: it is possible */
    hp_candidate figures;
    int n_role;
    int64_t *memory_by_role; /* planned peak, or its lower bound when nothing was placed; with `eager` what it
                                keeps */
    const char *bound_by;    /* bound_by.h; NULL: not simulated */
    hp_exposure exposure;    /* what the step rests on, with all figures */
    hp_uncertainty uncertainty;
    hp_draws draw; /* of the jitter, which gives nearly the predicted step */
    int64_t tasks; /* of all roles */
} hp_evaluation;

/* Bounds and an estimate without lowering (estimate.h). */
hp_status hp_eval_estimate(hp_eval *e, const hp_strategy *s, hp_estimate *out, hp_error *err);
double hp_eval_weights(const hp_eval *e, const hp_strategy *s);
/* Do the rules, the device and the network allow it on at most n_devices (0: any number)? Everything but memory. */
bool hp_eval_allows(const hp_eval_setup *setup, const hp_strategy *s, int n_devices, hp_reject *why);
/* What a rank may use. */
hp_memory_limit hp_eval_limit(const hp_eval *e, const hp_strategy *s);

/* The strategy's program, its cut completed, without offsets in memory. */
hp_status hp_eval_lower(hp_eval *e, hp_arena *arena, const hp_strategy *s, hp_program **p, hp_error *err);

/* How much is found out about a strategy. */
typedef enum hp_eval_depth {
    HP_EVAL_MEMORY, /* legality and memory: the most bytes alive at once */
    HP_EVAL_QUICK,  /* and one simulation without jitter: what ranks alone, step_s */
    HP_EVAL_FITS,   /* legality and memory with offsets: the exact peak, and what reuse of memory waits for */
    HP_EVAL_RANK,   /* and one simulation without jitter */
    HP_EVAL_PLACED  /* and all figures (search_figures.h) */
} hp_eval_depth;

/* Evaluates a strategy; an infeasible one is a value (reject.code), not an error. Its cut is completed.
 * Results live in `arena`. */
hp_status hp_evaluate(hp_eval *e, hp_arena *arena, const hp_strategy *s, hp_eval_depth depth,
                      hp_evaluation *out, hp_error *err);

/* The same, with all figures, of a program that is there: the strategy's, or one written by hand, of which it says how its ranks are
 * named. */
hp_status hp_eval_program(hp_eval *e, hp_arena *arena, const hp_program *p, const hp_strategy *s,
                          hp_evaluation *out, hp_error *err);

/* The predicted trace of a lowered program, with a draw of its jitter: the spans of all ranks when they are few, else
 * those of the first replica. */
hp_status hp_eval_trace(hp_eval *e, hp_arena *arena, const hp_program *p, hp_draws draw,
                        hp_sim_result *result, hp_error *err);

#endif
