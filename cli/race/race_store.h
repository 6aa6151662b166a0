/* race_store.h - reads a race's candidates from plan.db, and writes its result back. */
#ifndef HP_RACE_STORE_H
#define HP_RACE_STORE_H

#include "cli/race/race.h"

/* Reads the plan, chooses who runs, and writes a plan for each into the directory *w. Errors: race_run's. */
hp_status race_open(hp_arena *arena, const race_options *o, race *r, workspace *w, hp_error *err);
/* Reranks the candidates and writes the winner's plan, and the runs if they are kept. */
hp_status race_store(hp_arena *arena, const race_options *o, race *r, hp_error *err);

#endif
