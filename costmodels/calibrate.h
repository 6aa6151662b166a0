/* calibrate.h - recorded runs to a cost table: what the executor measured, in the words the simulator asks
 * with.
 *
 * Rows of single tasks come from runs of one rank (nobody contends); shares of the node's compute from
 * data-parallel runs of several ranks, held against those rows; messages and all-reduces from every run, as
 * far as no member was computing. */
#ifndef HP_CALIBRATE_H
#define HP_CALIBRATE_H

#include "costmodels/rows.h"
#include "plan/base/db.h"

typedef struct hp_calibration hp_calibration;

/* Everything lives in `arena`. The machine names the rows' device and link classes. */
hp_calibration *hp_calibration_new(hp_arena *arena, const hp_machine *m);

/* Adds the newest executed run of a run.db, which holds its plan. The first iteration is left out as warm-up
 * when there are at least three. Errors: HP_EDATA (no such run, a damaged file). */
hp_status hp_calibration_add(hp_calibration *c, hp_db *db, hp_error *err);

/* What was measured so far; rows of `before` (may be NULL) that were not measured again are kept. */
hp_status hp_calibration_table(hp_calibration *c, const hp_cost_table *before, const char *date,
                               hp_cost_table **t, hp_error *err);

#endif
