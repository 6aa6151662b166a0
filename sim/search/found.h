/* found.h - what a search has found so far, and its final result. */
#ifndef HP_FOUND_H
#define HP_FOUND_H

#include "sim/search/search_points.h"

typedef struct found {
    hp_arena *arena;
    const hp_space *space;
    const hp_search_options *o;
    hp_search_result *r;
    hp_search_worker *worker;
    int n_worker;
    hp_tally tally;
    int capacity;                       /* capacity of r->best */
    hp_evaluation best_of[HP_FAMILIES]; /* n_role 0: none */
    double bound_of[HP_FAMILIES];       /* lowest bound of unsimulated points; 0: all were simulated */
    bool short_of_memory;
    int n_open; /* the most promising open points, best first */
    hp_scored_point open[HP_OPEN_LISTED];
} found;

/* One worker per thread. */
found found_new(hp_arena *arena, const hp_eval_setup *setup, const hp_space *space,
                const hp_search_options *o, hp_search_result *r);
void found_free(found *f);

/* Adds a candidate or a reject. */
void found_add(found *f, const hp_evaluation *e, int order);
/* Notes a point that cannot beat those kept, or that was not simulated for lack of budget. */
void found_rule_out(found *f, const hp_scored_point *p);
void found_leave_open(found *f, const hp_scored_point *p);

/* Reports progress to the caller, if wanted. */
void found_tell(const found *f, const char *phase, int64_t done, int64_t total);

/* The result: the best with all their figures, families without a candidate, rejects with fixes. */
hp_status found_finish(found *f, hp_error *err);

#endif
