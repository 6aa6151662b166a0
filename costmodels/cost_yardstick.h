/* cost_yardstick.h - internal to calibrate: the rows that say how fast the machine was, and the speed of each run. */
#ifndef HP_COST_YARDSTICK_H
#define HP_COST_YARDSTICK_H

#include "costmodels/cost_samples.h"

/* A row per yardstick and number of ranks that computed at a time. Quiet: the 5 % quantile of its readings, which no
 * single lucky one decides. Spread: of the means of runs, less what so few readings vary by (DerSimonian & Laird 1986);
 * 0 of fewer than three runs. */
void hp_yardstick_rows(hp_cost_table *t, const hp_machine *m, const hp_sample_list *l);

/* The slowdown of each run against the quiet machine with as many ranks, from the table's rows, which are sorted: drawn
 * towards the usual one as far as readings are few (hp_speed_shrink). A run without readings counts as quiet. */
hp_speed *hp_run_speeds(const hp_cost_table *t, const hp_machine *m, const hp_sample_list *l);

/* How the time of a task varies within runs: the speed of the core (jitter_fit.h), and of each task by itself what is
 * left of the median variance of tasks over iterations. None without readings. */
void hp_jitter_row(hp_cost_table *t, const hp_machine *m, const hp_sample_list *l);

/* How far off steps of runs were that fed no row (error_fit.h). */
void hp_error_row(hp_cost_table *t, const hp_machine *m, const hp_sample_list *l);

#endif
