/* conditions.h - under which conditions a search ran: kept in plan.db beside the plan. */
#ifndef HP_CLI_CONDITIONS_H
#define HP_CLI_CONDITIONS_H

#include "plan/base/db.h"
#include "sim/search/evaluate.h"

hp_status conditions_write(hp_db *db, const hp_eval_setup *e, hp_error *err);
/* Leaves `e` as it is where the database says nothing. Errors: HP_EDATA. */
hp_status conditions_read(hp_db *db, hp_eval_setup *e, hp_error *err);

#endif
