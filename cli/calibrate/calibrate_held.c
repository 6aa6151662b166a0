/* calibrate_held.c - predicts an executed strategy at the speed of its run. */
#include "cli/calibrate/calibrate_held.h"

#include <math.h>

hp_status calibrate_held_error(hp_arena *arena, const simulate_setup *s, const hp_cost_table *t,
                               hp_calibration *c, const calibrate_job *job, hp_db *db, hp_held *held,
                               bool *undisturbed, hp_error *err) {
    hp_speed speed;
    double measured_s = 0;
    hp_evaluation e;
    HP_TRY(hp_calibration_speed(c, t, db, &speed, &measured_s, undisturbed, err));
    simulate_setup now = *s;
    now.costs.table = hp_cost_at(arena, t, &speed);
    HP_TRY(
        hp_evaluate(simulate_eval(arena, &now, job->batch), arena, job->strategy, HP_EVAL_PLACED, &e, err));
    *held = (hp_held){.log_error = log(measured_s / e.figures.step_s), .step_s = measured_s};
    return HP_OK;
}
