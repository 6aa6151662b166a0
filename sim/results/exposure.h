/* exposure.h - the costs on which a predicted step rests: the share of each kind of cost, and its
 * uncertainty. Two strategies that spend their time alike have the same error, which cancels in their
 * difference. */
#ifndef HP_EXPOSURE_H
#define HP_EXPOSURE_H

#include "sim/costs/costs.h"

/* Kinds of cost: forward and backward of each layer operator, tasks without a layer, and what ranks wait for.
 * Errors of measured costs are independent between kinds. Data sheets, papers and guesses are too high for
 * all computing, or for all waiting, at once. */
enum {
    HP_COST_KINDS = HP_TASK_OPS + 2 * HP_LAYER_OPS + HP_SIM_WAITS,
    HP_COST_OF_WAITS = HP_COST_KINDS - HP_SIM_WAITS,
    HP_COST_GUESSED = HP_COST_KINDS, /* unmeasured computing, then waiting */
    HP_COST_ERRORS = HP_COST_KINDS + 2
};

typedef struct hp_exposure {
    float share[HP_COST_KINDS];  /* share of the step; sums to 1 */
    float error[HP_COST_ERRORS]; /* share of the step x relative standard error of its costs */
    float sheet
        [HP_COST_KINDS]; /* share of the step that rests on data sheets or on another device class's rates */
    float guess[HP_COST_KINDS]; /* share that rests on guesses, including tasks measured on other devices */
} hp_exposure;

/* Exposure of a step, from the program's busiest role, `role`. Waits have the errors of their messages; idle
 * time is what others compute or wait for. */
void hp_exposure_of(const hp_sim_costs *costs, const hp_program *p, const hp_graph *g, int role,
                    const hp_sim_result *r, hp_exposure *out);

/* A kind of task, and its share of the step without measured or published costs. */
typedef struct hp_unmeasured {
    char task[32]; /* "bwd attention", "gradient all-reduce" */
    double guess, sheet;
} hp_unmeasured;
/* Lists the kinds with at least `least` of the step, largest first; returns their number. */
int hp_exposure_unmeasured(const hp_exposure *x, double least, hp_unmeasured out[HP_COST_KINDS]);

/* Variance of the step's logarithm due to errors of its costs: kinds are independent; within a kind, all
 * costs are too high or all too low. */
double hp_exposure_variance(const hp_exposure *x);
/* Variance of the ratio of two steps; common costs cancel. */
double hp_exposure_apart(const hp_exposure *a, const hp_exposure *b);
/* Fraction of their time that they spend differently: 0 alike .. 1 nothing in common. */
double hp_exposure_distance(const hp_exposure *a, const hp_exposure *b);

#endif
