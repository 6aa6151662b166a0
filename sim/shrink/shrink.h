/* shrink.h - moves a plan's strategy to fewer devices: `run --fit-here`, and --elastic after nodes are
 * lost. */
#ifndef HP_SHRINK_H
#define HP_SHRINK_H

#include "sim/shrink/fewer.h"
#include "sim/search/fix.h"

/* Finds the strategy nearest to the question's (fewer.h) that is legal and fits on at most q->n_devices > 0
 * devices of e's machine, with the fixes that rules propose (fix.h). Where all lack memory: one that
 * recomputes, else the nearest with the fix found for it. The batch stays. Returns the question's own
 * strategy where that fits. `e` has the question's batch. Errors: HP_EPLAN with the limiting number of the
 * nearest one, and its fix or that there is none. */
hp_status hp_search_shrink(hp_eval *e, const hp_question *q, hp_strategy *out, hp_error *err);

#endif
