/* search_figures.h - all figures of a program whose memory is placed: its step, how certain that is, where its time goes.
 *
 * A run reports the median of its steps, and so does a prediction: where tasks jitter, of a few simulated draws, which
 * lie nearly log-normal, the exponential of the mean of their logarithms. */
#ifndef HP_SEARCH_FIGURES_H
#define HP_SEARCH_FIGURES_H

#include "sim/search/evaluate.h"

/* The jitter that an evaluation rests on: given by hand, or the table's. */
hp_jitter_process hp_figures_jitter(const hp_eval_setup *o);

/* How one program is simulated: without jitter. */
hp_sim_options hp_figures_options(const hp_eval_setup *o, const hp_program *p);
/* With this draw of it; nothing is folded where ranks are few. */
hp_sim_options hp_figures_drawn(const hp_eval_setup *o, const hp_program *p, hp_draws draw);

/* The costs of an evaluation: at the speed that its table predicts for, and on the quiet machine. */
typedef struct hp_figures_costs {
    hp_sim_costs usual;
    const hp_sim_costs *quiet; /* NULL: how fast the machine is when quiet is not known */
} hp_figures_costs;

/* Fills in out->figures but for what is known of memory and of the strategy, out->exposure, out->uncertainty,
 * out->draw and out->bound_by. */
hp_status hp_figures_of(const hp_eval_setup *o, const hp_figures_costs *costs, const hp_program *p,
                        hp_evaluation *out, hp_error *err);

#endif
