/* search_figures.h - all figures of a program whose memory is placed: its step, its uncertainty, and where
 * its time goes.
 *
 * A run reports the median of its steps, and so does a prediction. If tasks jitter, a few simulated draws are
 * nearly log-normal; their median is the exponential of the mean of their logarithms. */
#ifndef HP_SEARCH_FIGURES_H
#define HP_SEARCH_FIGURES_H

#include "sim/search/evaluate.h"

/* Options to simulate a program without jitter. */
hp_sim_options hp_figures_options(const hp_eval_setup *o, const hp_program *p);
/* Options to simulate this draw; nothing is folded if there are few ranks. */
hp_sim_options hp_figures_drawn(const hp_eval_setup *o, const hp_program *p, hp_draws draw);

/* The costs of an evaluation: at the speed for which its table predicts, and on the quiet machine. */
typedef struct hp_figures_costs {
    hp_sim_costs usual;
    const hp_sim_costs *quiet; /* NULL: the speed of the quiet machine is unknown */
} hp_figures_costs;

/* Fills out->figures (except the parts that depend on memory and strategy), out->exposure, out->uncertainty,
 * out->draw and out->bound_by. */
hp_status hp_figures_of(const hp_eval_setup *o, const hp_figures_costs *costs, const hp_program *p,
                        hp_evaluation *out, hp_error *err);

#endif
