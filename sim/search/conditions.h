/* conditions.h - what a prediction depends on beyond the plan: the cost table, and the search's rules, memory
 * model, limits and disturbances. They are stored in plan.db, so that `why`, `run --plan` and others predict
 * under the same conditions, whatever the local machine has. */
#ifndef HP_CONDITIONS_H
#define HP_CONDITIONS_H

#include "sim/search/evaluate.h"

/* Sets what the plan itself determines: graph, machine, mode, dtype, device, batch, seed. */
void hp_conditions_of_plan(const hp_plan *plan, hp_eval_setup *e);

hp_status hp_conditions_write(hp_db *db, const hp_eval_setup *e, hp_error *err);
/* Fills all of `e` for a plan read from the same database. Lives in `arena`. Errors: HP_EDATA. */
hp_status hp_conditions_read(hp_arena *arena, hp_db *db, const hp_plan *plan, hp_eval_setup *e,
                             hp_error *err);

/* Parses a strategy to apply to a plan; the precision defaults to the plan's. Errors: HP_EUSAGE. */
hp_status hp_conditions_strategy(const char *text, const hp_plan *plan, hp_strategy *s, hp_error *err);

#endif
