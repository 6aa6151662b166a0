/* calibrate.h - builds a cost table from recorded runs: what the executor measured, under the keys that the
 * simulator looks up.
 *
 * Rows of single tasks come from runs of one rank (no contention); shares of the node's compute from
 * data-parallel runs of several ranks, compared with those rows; messages and collectives from every run,
 * where no member was computing. */
#ifndef HP_CALIBRATE_H
#define HP_CALIBRATE_H

#include "costmodels/error_fit.h"
#include "costmodels/cost_rows.h"
#include "base/db.h"

typedef struct hp_calibration hp_calibration;

/* Everything lives in `arena`. The machine gives the rows' device and link classes. */
hp_calibration *hp_calibration_new(hp_arena *arena, const hp_machine *m);

/* Adds the newest executed run of a run.db, which contains its plan. The first of three or more iterations is
 * skipped as warm-up. job: what was run, in words; time_s: when, since 1970. Errors: HP_EDATA (no such run, a damaged
 * file). */
hp_status hp_calibration_add(hp_calibration *c, const char *job, int64_t time_s, hp_db *db, hp_error *err);

/* How fast the machine was in the newest executed run of a run.db, against the quiet one of the table; and its median step.
 * *undisturbed: other processes took little of the ranks' time, so that a step says something of the table. The run is not
 * added. Errors: HP_EDATA. */
hp_status hp_calibration_speed(const hp_calibration *c, const hp_cost_table *t, hp_db *db, hp_speed *speed,
                               double *step_s, bool *undisturbed, hp_error *err);
/* A run that fed no row was predicted. */
void hp_calibration_hold(hp_calibration *c, hp_held held);

/* What was added so far. */
typedef struct hp_sample_list hp_sample_list;
hp_sample_list *hp_calibration_samples(hp_calibration *c);

/* The table of all measurements so far; rows of `before` (may be NULL) that were not measured again are
 * kept. */
hp_status hp_calibration_table(hp_calibration *c, const hp_cost_table *before, const char *date,
                               hp_cost_table **t, hp_error *err);

#endif
