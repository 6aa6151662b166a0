/* calibrate_held.h - whole strategies that are run to see how far off their predictions are: they feed no row. */
#ifndef HP_CALIBRATE_HELD_H
#define HP_CALIBRATE_HELD_H

#include "cli/calibrate/calibrate_jobs.h"
#include "cli/options/simulate.h"
#include "costmodels/calibrate.h"

/* An executed run of a strategy against its prediction at the speed that the machine had in it: what is left is the
 * table's and the simulator's. *undisturbed: other processes did not disturb it. Errors: those of reading and predicting. */
hp_status calibrate_held_error(hp_arena *arena, const simulate_setup *s, const hp_cost_table *t,
                               hp_calibration *c, const calibrate_job *job, hp_db *db, hp_held *held,
                               bool *undisturbed, hp_error *err);

#endif
