/* calibrate_held.h - whole strategies that are run to measure the prediction error; they feed no row. */
#ifndef HP_CALIBRATE_HELD_H
#define HP_CALIBRATE_HELD_H

#include "cli/calibrate/calibrate_jobs.h"
#include "cli/options/simulate.h"
#include "costmodels/calibrate.h"

/* Compares an executed run of a strategy with its prediction at the machine's speed during the run: the rest
 * is the error of table and simulator. *undisturbed: other processes did not disturb it. Errors: those of
 * reading and predicting. */
hp_status calibrate_held_error(hp_arena *arena, const simulate_setup *s, const hp_cost_table *t,
                               hp_calibration *c, const calibrate_job *job, hp_db *db, hp_held *held,
                               bool *undisturbed, hp_error *err);

#endif
