/* shrink.h - a plan's strategy on fewer devices than it has: `run --fit-here`, and --elastic where nodes are lost. */
#ifndef HP_SHRINK_H
#define HP_SHRINK_H

#include "sim/shrink/fewer.h"
#include "sim/search/fix.h"

/* The strategy nearest to the question's (fewer.h) that is legal and fits on at most q->n_devices > 0 devices of e's machine,
 * with what rules propose where they refuse it there (fix.h); where memory lacks with all of them, one that recomputes, else the
 * nearest one with the fix that is found for it. The batch stays. Its own strategy where that fits. `e` has the question's batch.
 * Errors: HP_EPLAN with the limiting number of the nearest one, and its fix or that there is none. */
hp_status hp_search_shrink(hp_eval *e, const hp_question *q, hp_strategy *out, hp_error *err);

#endif
