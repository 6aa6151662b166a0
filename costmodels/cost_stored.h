/* cost_stored.h - the cost table of a prediction, stored beside it in plan.db: a later command computes with
 * the same figures, wherever it runs and whatever was calibrated since. */
#ifndef HP_COST_STORED_H
#define HP_COST_STORED_H

#include "costmodels/table.h"
#include "base/db.h"

/* Writes the table and its fallbacks with full precision and their origin. */
hp_status hp_cost_store(hp_db *db, const hp_cost_table *t, hp_error *err);
/* Reads the stored table. Lives in `arena`. Errors: HP_EDATA if there is none or it is damaged. */
hp_status hp_cost_restore(hp_arena *arena, hp_db *db, hp_cost_table **t, hp_error *err);

/* Reads the table of a file: FILE.cost, or the one inside a plan.db or run.db. Lives in `arena`. Errors:
 * HP_EDATA. */
hp_status hp_cost_open(hp_arena *arena, const char *path, hp_cost_table **t, hp_error *err);

#endif
