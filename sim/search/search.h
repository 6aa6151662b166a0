/* search.h - finds the fastest strategy that fits: memory first, then bounds and estimates, then
 * simulation. */
#ifndef HP_SEARCH_H
#define HP_SEARCH_H

#include "sim/search/evaluate.h"
#include "plan/strategy/family.h"
#include "sim/search/space.h"

#include <signal.h>

typedef enum hp_sort { HP_SORT_TIME, HP_SORT_IMAGES, HP_SORT_MEMORY } hp_sort;

/* Progress of a search: `done` of the phase's `total` strategies. */
typedef struct hp_search_progress {
    const char *phase; /* "strategies", "candidates", "figures": a string literal */
    int64_t done, total;
    const hp_evaluation *best; /* NULL: none yet */
} hp_search_progress;

typedef struct hp_search_options {
    int top; /* candidates to keep; bounds may rule out the others */
    hp_sort sort;
    bool all_of_top; /* also for large programs; otherwise only for number 1 and the best of each family */
    int64_t budget;  /* limit on tasks lowered and simulated; 0: a default */
    int threads;     /* 0: one; the result does not depend on it */
    const volatile sig_atomic_t *stop; /* nonzero: return the best so far; may be NULL */
    void (*progress)(void *self, const hp_search_progress *p); /* called occasionally; may be NULL */
    void *self;
} hp_search_options;

static inline bool hp_search_stopped(const hp_search_options *o) {
    return o->stop && *o->stop;
}

/* A family without a candidate: ruled out by a bound, or rejected. */
typedef struct hp_absent {
    hp_family family;
    double bound;        /* lower bound (seconds, bytes) of its strategies that may fit; 0: none may fit */
    hp_rejected nearest; /* the reject that missed by the least; count 0: none */
} hp_absent;

/* An open strategy, with the estimates by which points are chosen for simulation: its time, its largest rank
 * and its program's tasks; `bound` as above. */
typedef struct hp_open_strategy {
    hp_strategy strategy;
    double estimate_s, memory_bytes, bound;
    int64_t tasks;
} hp_open_strategy;
enum { HP_OPEN_LISTED = 3 };

typedef struct hp_search_result {
    int64_t searched;  /* points of the space */
    int64_t valid;     /* legal points, not found too large */
    int64_t simulated; /* valid points that were simulated */
    /* valid points with a lower bound above the worst one kept (large programs: above the best) */
    int64_t cut_off;
    /* Valid points that were not simulated, although their bound is below the best value, because the budget
     * was spent or the search stopped. open_bound: the lowest of their bounds, in seconds, or in bytes if
     * ranked by memory. */
    int64_t open;
    double open_bound;
    int n_promising; /* the best by estimate of the open points that probably fit */
    hp_open_strategy promising[HP_OPEN_LISTED];
    bool stopped; /* by the user */
    int n;
    /* The `top` best, the best of each simulated family, and plain data parallelism if possible; ranked by
     * the predicted step. */
    hp_evaluation *best;
    int n_absent;
    hp_absent *absent;
    hp_rejected plain; /* plain data parallelism if it is impossible; count 0: it is possible, or does not
                        * exist */
    int n_rejected;
    hp_rejected *rejected; /* one per code, with the closest miss as example */
} hp_search_result;

/* Upper bound on the fraction of its time by which number 1 could be beaten, 0 .. 1; 0: it is the best of the
 * space within the model. */
double hp_search_gap(const hp_search_result *r, hp_sort sort);

/* Simulates the most promising point of each family (plan/strategy/family.h), then the others, smallest
 * estimates first. Rules out points whose lower bound is above the values found. The result is the best of
 * the space within the model, except for points left open when the budget is spent.
 *
 * Strips of images are examined last, for points that would barely fit as a whole; other numbers of strips
 * only if nothing fits. An empty `best` means that no strategy of the space fits, if none is open; it is a
 * result, not an error. Deterministic for any number of threads: ties go to the earlier point. Errors:
 * HP_EINTERNAL and the like. */
hp_status hp_search(hp_arena *arena, const hp_eval_setup *setup, const hp_space *space,
                    const hp_search_options *o, hp_search_result *result, hp_error *err);

/* If nothing else fits: finds a legal point of `space` in strips of any number and depth that fits, with its
 * memory placed. Tries the lowest bounds first and takes the first that fits. found->n_role = 0: none fits,
 * or the budget of tasks was spent. Adds the number of points to *searched. */
hp_status hp_search_any_strips(hp_arena *arena, hp_eval *e, const hp_space *space, hp_evaluation *found,
                               int64_t *searched, hp_error *err);

/* If `comm` is all `auto` (backends.c), assigns another back end or algorithm to the kinds of traffic that it
 * carries faster than the device's own. If `fuse` has its default, also tries other bucket sizes. The
 * simulated step decides, not a message alone: hiding it behind computing gains nothing (MCR-DL, Anthony et
 * al. 2023, chooses by message size). `e` must be evaluated to this depth, and is evaluated again. hp_search
 * applies this to its results. */
hp_status hp_search_backends(hp_eval *eval, hp_arena *arena, hp_eval_depth depth, hp_evaluation *e,
                             hp_error *err);

/* If a machine's devices differ (uneven.c), finds shares of the batch, and proportions of the tiles' rows and
 * columns, that are faster than equal ones; existing ones stay. `e` must be evaluated, and is evaluated
 * again, to HP_EVAL_RANK. hp_search applies this to its results. */
hp_status hp_search_uneven(hp_eval *eval, hp_arena *arena, hp_evaluation *e, hp_error *err);

/* The value used for ranking, smaller is better: seconds or bytes. */
double hp_search_value(const hp_evaluation *e, hp_sort sort);

/* Are two candidates indistinguishable? Compares their measurements if both have them (overlapping
 * intervals), otherwise their predictions (hp_interval_tie). Candidates with different counts of gpus never
 * tie. */
bool hp_search_tie(const hp_evaluation *a, const hp_evaluation *b);

/* The common ranking of candidates. Sorts by `sort` (stable) and marks ties with the preceding candidate. */
void hp_search_rank(hp_evaluation *list, int n, hp_sort sort);

#endif
