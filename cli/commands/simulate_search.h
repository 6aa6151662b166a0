/* simulate_search.h - how `simulate` finds plans: it searches, or evaluates the strategies it is given. */
#ifndef HP_SIMULATE_SEARCH_H
#define HP_SIMULATE_SEARCH_H

#include "cli/options/simulate_found.h"

/* Searches every count and precision; shows progress. ^C ends it with the best plan so far
 * (simulate_found.stopped). */
hp_status simulate_search(hp_arena *arena, simulate_setup *s, simulate_found *f, hp_error *err);

/* Evaluates every strategy that was given at every count that it can occupy. */
hp_status simulate_curves(hp_arena *arena, simulate_setup *s, simulate_found *f, hp_error *err);

/* One of the two, as --strategy says, with its points and how long it took. */
hp_status simulate_find(hp_arena *arena, simulate_setup *s, simulate_found *f, hp_error *err);

/* Finds plans for every size of a list in --image but the last, which becomes the size in the options. */
hp_status simulate_earlier_sizes(hp_arena *arena, simulate_options *o, simulate_sizes *sizes, hp_error *err);
void simulate_add_size(const simulate_setup *s, const simulate_found *f, simulate_sizes *sizes);

/* Adds reasons to those there are, and a point without a plan, or with the one that was found for it. */
void simulate_add_rejects(hp_arena *arena, simulate_found *f, const hp_rejected *r, int n);
simulate_point *simulate_add_point(hp_arena *arena, simulate_found *f, const char *curve, int gpus,
                                   int64_t batch);
/* Which reason says more, of the best so far (NULL: none) and n others. */
const hp_rejected *simulate_nearest(const hp_rejected *best, const hp_rejected *r, int n);
/* Fills in what follows from the points' steps. */
void simulate_rate_points(const simulate_setup *s, simulate_found *f);

#endif
