/* calibrate.h - builds a cost table from recorded runs: the executor's measurements, under the keys that the
 * simulator looks up.
 *
 * Rows of single tasks come from runs of one rank (no contention). Shares of the node's compute come from
 * data-parallel runs of several ranks, compared with those rows. Messages and collectives come from every
 * run, at times when no member was computing. */
#ifndef HP_CALIBRATE_H
#define HP_CALIBRATE_H

#include "costmodels/error_fit.h"
#include "costmodels/cost_rows.h"
#include "base/db.h"

typedef struct hp_calibration hp_calibration;

/* Everything lives in `arena`. The machine determines the device and link classes of the rows. */
hp_calibration *hp_calibration_new(hp_arena *arena, const hp_machine *m);

/* Adds the newest executed run of a run.db, which contains its plan. Skips the first of three or more
 * iterations as warm-up. job: description of the run; time_s: seconds since 1970. Errors: HP_EDATA (no such
 * run, a damaged file). */
hp_status hp_calibration_add(hp_calibration *c, const char *job, int64_t time_s, hp_db *db, hp_error *err);

/* Measures the machine's speed in the newest executed run of a run.db, relative to the table's quiet machine,
 * and the run's median step. *undisturbed: other processes took little of the ranks' time, so that the step
 * is comparable with the table. The run is not added. Errors: HP_EDATA. */
hp_status hp_calibration_speed(const hp_calibration *c, const hp_cost_table *t, hp_db *db, hp_speed *speed,
                               double *step_s, bool *undisturbed, hp_error *err);
/* Adds a run that fed no row but was predicted. */
void hp_calibration_hold(hp_calibration *c, hp_held held);

/* The samples added so far. */
typedef struct hp_sample_list hp_sample_list;
hp_sample_list *hp_calibration_samples(hp_calibration *c);

/* The table of all measurements so far. Keeps rows of `before` (may be NULL) that were not measured again. */
hp_status hp_calibration_table(hp_calibration *c, const hp_cost_table *before, const char *date,
                               hp_cost_table **t, hp_error *err);

#endif
