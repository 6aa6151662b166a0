/* evaluate.h - evaluates one strategy: legality, memory, time. The search calls it for each candidate,
 * `simulate --strategy` for one, and `run` to rebuild a stored plan for another device or candidate. */
#ifndef HP_EVALUATE_H
#define HP_EVALUATE_H

#include "plan/store/store.h"
#include "sim/results/interval.h"
#include "sim/memory/sim_memory_fit.h"
#include "sim/search/estimate.h"
#include "plan/lower/lower.h"

typedef struct hp_eval_setup {
    const hp_graph *graph;
    const hp_plan *plan; /* source of the graph, so that a fix may build another; NULL: a fix keeps it */
    const hp_machine *machine;
    const hp_cost_table *table;
    hp_mode mode;
    hp_dtype dtype;
    const hp_device_info *device;         /* the device that will run the plan; NULL: one with every back
                                           * end */
    int64_t batch;                        /* global */
    int64_t memory_limit;                 /* bytes per rank; 0: the device's */
    const struct hp_framework *framework; /* the framework that runs it; NULL: hplan itself */
    bool eager;                           /* counts memory as an eager framework keeps it, not as planned */
    hp_rules rules;
    bool no_fold;
    double jitter_cv;   /* jitter of each task, given by the user; 0: the table's; negative: none */
    int straggler_rank; /* -1 = none */
    double straggler_factor;
    uint64_t seed;
} hp_eval_setup;

/* Largest number of tasks of a program that is simulated for a hint or a refinement; larger ones take seconds
 * each. */
enum { HP_TRIAL_TASKS = 200000 };

typedef struct hp_eval hp_eval;
hp_eval *hp_eval_new(hp_arena *arena, const hp_eval_setup *setup);
const hp_eval_setup *hp_eval_get(const hp_eval *e);
/* The meaning of comm=auto according to the cost table. */
const hp_comm_table *hp_eval_comm(const hp_eval *e);

/* Unit costs for plain balanced cuts, as hp_lower_options.unit_cost and hp_plan_build take them: seconds per
 * unit and micro-batch. */
hp_status hp_eval_unit_cost(hp_eval *e, const hp_strategy *s, const double **unit_cost, hp_error *err);
/* Seconds of all units on one device of that class for a micro-batch of the strategy, at full speed: forward,
 * and backward in training. */
double hp_eval_class_seconds(hp_eval *e, const hp_strategy *s, int class);
/* Writes out the cut of a strategy without one, if stages differ in width or memory decides; plain balanced
 * cuts stay unchanged. */
void hp_eval_complete(hp_eval *e, hp_strategy *s, hp_cut_kind kind);

typedef struct hp_evaluation {
    hp_strategy strategy;
    hp_reject reject; /* HP_FEASIBLE: it is possible */
    hp_candidate figures;
    int n_role;
    int64_t *memory_by_role; /* planned peak, or its lower bound if nothing was placed; with `eager`, the
                              * framework's peak */
    const char *bound_by;    /* bound_by.h; NULL: not simulated */
    hp_exposure exposure;    /* what the step rests on, if all figures were computed */
    hp_uncertainty uncertainty;
    hp_draws draw; /* the draw of the jitter that gives nearly the predicted step */
    int64_t tasks; /* over all roles */
} hp_evaluation;

/* Bounds and an estimate without lowering (estimate.h). */
hp_status hp_eval_estimate(hp_eval *e, const hp_strategy *s, hp_estimate *out, hp_error *err);
double hp_eval_weights(const hp_eval *e, const hp_strategy *s);
/* Do the rules, the device and the network allow it on at most n_devices (0: any number)? Does not check
 * memory. */
bool hp_eval_allows(const hp_eval_setup *setup, const hp_strategy *s, int n_devices, hp_reject *why);
/* The memory that a rank may use. */
hp_memory_limit hp_eval_limit(const hp_eval *e, const hp_strategy *s);

/* Lowers the strategy, with its cut completed, without memory offsets. */
hp_status hp_eval_lower(hp_eval *e, hp_arena *arena, const hp_strategy *s, hp_program **p, hp_error *err);

/* Depth of an evaluation. */
typedef enum hp_eval_depth {
    HP_EVAL_MEMORY, /* legality and memory: the most live bytes */
    HP_EVAL_QUICK,  /* the same, and one simulation without jitter: only step_s */
    HP_EVAL_FITS,   /* legality and memory with offsets: the exact peak, and the waits due to reused memory */
    HP_EVAL_RANK,   /* and one simulation without jitter */
    HP_EVAL_PLACED  /* and all figures (search_figures.h) */
} hp_eval_depth;

/* Evaluates a strategy. An infeasible one is a value (reject.code), not an error. Completes its cut. Results
 * live in `arena`. */
hp_status hp_evaluate(hp_eval *e, hp_arena *arena, const hp_strategy *s, hp_eval_depth depth,
                      hp_evaluation *out, hp_error *err);

/* The same, with all figures, for a given program: the strategy's, or a hand-written one for which the
 * strategy gives the ranks' names. */
hp_status hp_eval_program(hp_eval *e, hp_arena *arena, const hp_program *p, const hp_strategy *s,
                          hp_evaluation *out, hp_error *err);

/* The predicted trace of a lowered program, with a draw of its jitter: the spans of all ranks if there are
 * few, otherwise those of the first replica. */
hp_status hp_eval_trace(hp_eval *e, hp_arena *arena, const hp_program *p, hp_draws draw,
                        hp_sim_result *result, hp_error *err);

#endif
