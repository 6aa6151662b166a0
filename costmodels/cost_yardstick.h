/* cost_yardstick.h - internal to calibrate: the rows on the machine's speed, and the speed of each run. */
#ifndef HP_COST_YARDSTICK_H
#define HP_COST_YARDSTICK_H

#include "costmodels/cost_samples.h"

/* Adds a row per yardstick and number of ranks that computed at a time. Quiet: the 5 % quantile of its
 * readings, robust against a single lucky one. Spread: between the means of runs, minus the variation due to
 * so few readings (DerSimonian & Laird 1986); 0 for fewer than three runs. */
void hp_yardstick_rows(hp_cost_table *t, const hp_machine *m, const hp_sample_list *l);

/* The slowdown of each run relative to the quiet machine with as many ranks, from the table's sorted rows.
 * Shrunk towards the usual slowdown if readings are few (hp_speed_shrink). A run without readings counts as
 * quiet. */
hp_speed *hp_run_speeds(const hp_cost_table *t, const hp_machine *m, const hp_sample_list *l);

/* Adds the variation of a task's time within runs: the speed of the core (jitter_fit.h), and for each task
 * alone the rest of the median variance over iterations. Adds nothing without readings. */
void hp_jitter_row(hp_cost_table *t, const hp_machine *m, const hp_sample_list *l);

/* Adds the prediction error of steps in runs that fed no row (error_fit.h). */
void hp_error_row(hp_cost_table *t, const hp_machine *m, const hp_sample_list *l);

#endif
