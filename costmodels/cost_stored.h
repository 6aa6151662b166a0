/* cost_stored.h - the cost table that a prediction was made with, kept beside it in plan.db: a later command
 * computes with the same figures, wherever it runs and whatever was calibrated since. */
#ifndef HP_COST_STORED_H
#define HP_COST_STORED_H

#include "costmodels/table.h"
#include "base/db.h"

/* Writes the table and those it falls back on, every digit of them, with their origin. */
hp_status hp_cost_store(hp_db *db, const hp_cost_table *t, hp_error *err);
/* The stored table. Lives in `arena`. Errors: HP_EDATA where there is none, or it is damaged. */
hp_status hp_cost_restore(hp_arena *arena, hp_db *db, hp_cost_table **t, hp_error *err);

/* The table of a file: FILE.cost, or the one that plan.db or run.db holds. Lives in `arena`. Errors: HP_EDATA. */
hp_status hp_cost_open(hp_arena *arena, const char *path, hp_cost_table **t, hp_error *err);

#endif
