/* race_store.h - a race's candidates from plan.db, and its result into it. */
#ifndef HP_RACE_STORE_H
#define HP_RACE_STORE_H

#include "cli/race/race.h"

/* Reads the plan, chooses who runs, and writes a plan of each into the folder *w. Errors: race_run's. */
hp_status race_open(hp_arena *arena, const race_options *o, race *r, workspace *w, hp_error *err);
/* Ranks the candidates anew and writes the winner's plan, and the runs where they are kept. */
hp_status race_store(hp_arena *arena, const race_options *o, race *r, hp_error *err);

#endif
