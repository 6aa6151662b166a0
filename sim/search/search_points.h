/* search_points.h - the points of a space that are legal and may fit, each with its bound and estimate, in
 * the order in which simulating them pays. */
#ifndef HP_SEARCH_POINTS_H
#define HP_SEARCH_POINTS_H

#include "sim/search/search.h"
#include "sim/search/tally.h"

/* A thread's own caches of costs, cuts and parts. */
typedef struct hp_search_worker {
    hp_arena *arena;
    hp_eval *eval;
    hp_tally tally;
} hp_search_worker;

typedef struct hp_scored_point {
    hp_point p;
    double bound;   /* lower bound of the ranked value: seconds or bytes */
    double promise; /* likely value; smaller is better */
    double likely_bytes;
    int32_t order;  /* index in the space, breaks ties */
    uint8_t turn;   /* 0: best of its family; 2: probably does not fit; 1: all others */
    uint8_t family; /* hp_family */
} hp_scored_point;

typedef struct hp_points {
    hp_scored_point *list;
    int n;
    int64_t searched;     /* points of the space */
    bool short_of_memory; /* some strategy does not fit, or barely fits */
} hp_points;

/* Looks at all points of a space, on all workers' threads; counts rejects in the workers' tallies. */
hp_status hp_points_score(hp_arena *arena, const hp_space *space, const hp_search_options *o,
                          hp_search_worker *worker, int n_worker, hp_points *out, hp_error *err);

/* A point's strategy with its cut. */
hp_strategy hp_points_strategy(hp_eval *e, const hp_point *p);

/* A lowered program with more tasks costs as much as many small ones. */
enum { HP_LARGE_TASKS = 20000 };
bool hp_points_large(const hp_space *space, const hp_scored_point *p);

#endif
