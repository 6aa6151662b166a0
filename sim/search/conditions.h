/* conditions.h - what a prediction rests on beside the plan itself: the cost table, and the rules, memory
 * model, limits and disturbances of the search. Kept in plan.db, so that `why`, `run --plan` and the others
 * predict under the same, and never under what the machine at hand happens to have. */
#ifndef HP_CONDITIONS_H
#define HP_CONDITIONS_H

#include "sim/search/evaluate.h"

/* Sets what the plan itself says: graph, machine, mode, dtype, device, batch, seed. */
void hp_conditions_of_plan(const hp_plan *plan, hp_eval_setup *e);

hp_status hp_conditions_write(hp_db *db, const hp_eval_setup *e, hp_error *err);
/* All of `e` for a plan that was read from the same database. Lives in `arena`. Errors: HP_EDATA. */
hp_status hp_conditions_read(hp_arena *arena, hp_db *db, const hp_plan *plan, hp_eval_setup *e,
                             hp_error *err);

/* A strategy that is asked of a plan: where the text names no precision, it is the plan's. Errors: HP_EUSAGE. */
hp_status hp_conditions_strategy(const char *text, const hp_plan *plan, hp_strategy *s, hp_error *err);

#endif
