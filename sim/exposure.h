/* exposure.h - what a predicted step rests on: the part of it that each kind of cost makes up, and how uncertain the
 * costs of that kind are. Two strategies that spend their time alike are wrong alike, and their difference is not. */
#ifndef HP_EXPOSURE_H
#define HP_EXPOSURE_H

#include "sim/costs.h"

/* Kinds of cost: forward and backward of each layer operator, tasks without a layer, what ranks wait for. Errors of what
 * was measured have nothing to do with those of other kinds; what comes from data sheets, papers and guesses is too high
 * for all computing, or for all waiting, at once. */
enum {
    HP_COST_KINDS = HP_TASK_OPS + 2 * HP_LAYER_OPS + HP_SIM_WAITS,
    HP_COST_OF_WAITS = HP_COST_KINDS - HP_SIM_WAITS,
    HP_COST_GUESSED = HP_COST_KINDS, /* computing that was not measured, then waiting */
    HP_COST_ERRORS = HP_COST_KINDS + 2
};

typedef struct hp_exposure {
    float share[HP_COST_KINDS];  /* of the step; sums to 1 */
    float error[HP_COST_ERRORS]; /* of the step: share x relative standard error of what it is made of */
    float sheet
        [HP_COST_KINDS]; /* of the step: what rests on data sheets, or on rates of another class of devices */
    float guess[HP_COST_KINDS]; /* and what on guesses, among them tasks that were measured on others */
} hp_exposure;

/* Of a step of the program in which `role` has most to do. A wait has the errors of its messages; idle time is what
 * others compute, or wait for. */
void hp_exposure_of(const hp_sim_costs *costs, const hp_program *p, const hp_graph *g, int role,
                    const hp_sim_result *r, hp_exposure *out);

/* A kind of task, and the part of the step that it takes of which nothing was measured or published. */
typedef struct hp_unmeasured {
    char task[32]; /* "bwd attention", "gradient all-reduce" */
    double guess, sheet;
} hp_unmeasured;
/* Those of at least `least` of the step, the greatest first; returns how many. */
int hp_exposure_unmeasured(const hp_exposure *x, double least, hp_unmeasured out[HP_COST_KINDS]);

/* Variance of the logarithm of the step by the errors of its costs: kinds are independent, within a kind all is too
 * high or all too low. */
double hp_exposure_variance(const hp_exposure *x);
/* Of the ratio of two steps: what they share cancels. */
double hp_exposure_apart(const hp_exposure *a, const hp_exposure *b);
/* The part of their time that they spend otherwise: 0 alike .. 1 nothing in common. */
double hp_exposure_distance(const hp_exposure *a, const hp_exposure *b);

#endif
