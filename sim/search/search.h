/* search.h - which strategy is fastest and fits: memory first, bounds and estimates second, simulation third.
 */
#ifndef HP_SEARCH_H
#define HP_SEARCH_H

#include "sim/search/evaluate.h"
#include "plan/strategy/family.h"
#include "sim/search/space.h"

#include <signal.h>

typedef enum hp_sort { HP_SORT_TIME, HP_SORT_IMAGES, HP_SORT_MEMORY } hp_sort;

/* How far a search is: `done` of `total` strategies, of the phase's. */
typedef struct hp_search_progress {
    const char *phase; /* "strategies", "candidates", "figures": a literal */
    int64_t done, total;
    const hp_evaluation *best; /* NULL: none yet */
} hp_search_progress;

typedef struct hp_search_options {
    int top; /* candidates to keep; the others may be ruled out by bounds */
    hp_sort sort;
    bool all_of_top; /* also of large programs; else of those number 1 and the best of each family alone */
    int64_t budget;  /* tasks lowered and simulated in all; 0 = a default */
    int threads;     /* 0 = one; what is found does not depend on it */
    const volatile sig_atomic_t *stop; /* not 0: the best so far is wanted; may be NULL */
    void (*progress)(void *self, const hp_search_progress *p); /* called now and then; may be NULL */
    void *self;
} hp_search_options;

static inline bool hp_search_stopped(const hp_search_options *o) {
    return o->stop && *o->stop;
}

/* A family without a candidate: not simulated because a bound says it is slower, or rejected. */
typedef struct hp_absent {
    hp_family family;
    double bound; /* no strategy of it that may fit takes less (seconds, bytes); 0: none of them may fit */
    hp_rejected nearest; /* what was rejected by the least; count 0: none */
} hp_absent;

/* One of those that were left open: by the estimates that choose what is simulated, of its time, its largest rank and the
 * tasks of its program; `bound` as above. */
typedef struct hp_open_strategy {
    hp_strategy strategy;
    double estimate_s, memory_bytes, bound;
    int64_t tasks;
} hp_open_strategy;
enum { HP_OPEN_LISTED = 3 };

typedef struct hp_search_result {
    int64_t searched;  /* points of the space */
    int64_t valid;     /* legal, and not found too large */
    int64_t simulated; /* of those */
    int64_t
        cut_off; /* of those: their lower bound is above the worst one kept (large programs: above the best) */
    /* Of those: not simulated although their bound is below the best one found, because the budget was spent or the
     * search was stopped; the lowest of their bounds, in seconds, or bytes where memory ranks. */
    int64_t open;
    double open_bound;
    int n_promising; /* of the open ones that probably fit, the best by their estimates */
    hp_open_strategy promising[HP_OPEN_LISTED];
    bool stopped; /* by the user */
    int n;
    /* The `top` best, the best of each family that was simulated, and plain data parallelism if it is possible;
     * ranked by the predicted step. */
    hp_evaluation *best;
    int n_absent;
    hp_absent *absent;
    hp_rejected plain; /* plain data parallelism where it is not possible; count 0: it is, or there is none */
    int n_rejected;
    hp_rejected *rejected; /* one per code, the one that misses least as example */
} hp_search_result;

/* The part of its time by which number 1 could be beaten at most, 0 .. 1; 0: it is the best of the space within the
 * model. */
double hp_search_gap(const hp_search_result *r, hp_sort sort);

/* The most promising of each family (plan/strategy/family.h) is simulated first, then the others, the smallest
 * estimates first; those whose lower bound is above what was found are ruled out. So the result is the best of the space within the
 * model, but for those left open when the budget is spent. Strips of images are looked at after all else, of those
 * that would not fit easily as a whole; of other numbers of strips, where nothing fits. An empty `best` means that no
 * strategy of the space fits, if none is open. Deterministic, also in the number of threads: ties go to the earlier point. Errors:
 * HP_EINTERNAL and the like; an empty `best` is a result. */
hp_status hp_search(hp_arena *arena, const hp_eval_setup *setup, const hp_space *space,
                    const hp_search_options *o, hp_search_result *result, hp_error *err);

/* Where nothing else fits: a legal point of `space` in strips, of any number and depth, that does, with its
 * memory placed; those whose bounds are lowest are tried first, and the first that fits is taken.
 * found->n_role = 0: there is none, or the budget of tasks was spent. *searched grows by the points there
 * are.
 */
hp_status hp_search_any_strips(hp_arena *arena, hp_eval *e, const hp_space *space, hp_evaluation *found,
                               int64_t *searched, hp_error *err);

/* Where `comm` is all `auto` (backends.c): the kinds of traffic that another back end or algorithm than the device's own
 * carries faster get it; and where `fuse` has its default, buckets of another size if they are faster. What counts is
 * the simulated step, not a message alone: one that is hidden by computing gains nothing (MCR-DL, Anthony et al. 2023,
 * chooses by message size). `e` was evaluated to this depth, and is again. hp_search does this to what it returns. */
hp_status hp_search_backends(hp_eval *eval, hp_arena *arena, hp_eval_depth depth, hp_evaluation *e,
                             hp_error *err);

/* Where a machine's devices are not all alike (uneven.c): shares of the batch, and proportions of the tiles' rows and
 * columns, with which the strategy is faster than with equal ones; what it has already stays. `e` was evaluated, and is
 * again, to HP_EVAL_RANK. hp_search does this to what it returns. */
hp_status hp_search_uneven(hp_eval *eval, hp_arena *arena, hp_evaluation *e, hp_error *err);

/* Can two candidates not be told apart? By what was measured of both (intervals that overlap), else by their predictions
 * (hp_interval_tie). Two counts of gpus never tie. */
bool hp_search_tie(const hp_evaluation *a, const hp_evaluation *b);

/* The one ranking of candidates. Sorts by what `sort` says (equal ones stay in their order) and marks ties with the
 * one ranked before anew. */
void hp_search_rank(hp_evaluation *list, int n, hp_sort sort);

#endif
