/* search.h - which strategy is fastest and fits: memory first, bounds and estimates second, simulation third.
 */
#ifndef HP_SIM_SEARCH_H
#define HP_SIM_SEARCH_H

#include "sim/search/evaluate.h"
#include "sim/search/space.h"

typedef enum hp_sort { HP_SORT_TIME, HP_SORT_IMAGES, HP_SORT_MEMORY } hp_sort;

typedef struct hp_search_options {
    int top; /* candidates to keep; the others may be cut off by bounds */
    hp_sort sort;
    int64_t max_tasks; /* larger programs are left out, and counted; 0 = a default */
    int64_t budget;    /* tasks lowered and simulated in all; what is left then is cut off; 0 = a default */
} hp_search_options;

typedef struct hp_search_result {
    int64_t searched;  /* points of the space */
    int64_t valid;     /* legal, and not found too large */
    int64_t simulated; /* of those */
    /* Of those: their lower bound is above the last one kept, or the budget was spent before their estimate came
     * up. */
    int64_t cut_off;
    int64_t left_out; /* legal, but too many tasks to simulate */
    int n;
    hp_evaluation *best; /* ranked by the upper end of the predicted step */
    int n_rejected;
    hp_rejected *rejected; /* one per code, the one that misses least as example */
} hp_search_result;

/* The best of each family (tiles or not, pipeline or not, ...) is simulated first, then the others, the
 * smallest estimates first, until every lower bound left is above what was found: then the result is the best
 * of the space within the model; or until the budget is spent. Strips of images are looked at after all else,
 * of those that would not fit easily as a whole; of other numbers of strips, where nothing fits. Errors:
 * HP_EINTERNAL and the like; an empty `best` is a result. Deterministic: ties go to the earlier point. */
hp_status hp_search(hp_arena *arena, hp_eval *e, const hp_space *space, const hp_search_options *o,
                    hp_search_result *result, hp_error *err);

/* Where nothing else fits: a legal point of `space` in strips, of any number and depth, that does, with its
 * memory placed; those whose bounds are lowest are tried first, and the first that fits is taken.
 * found->n_role = 0: there is none, or the budget of tasks was spent. *searched grows by the points there
 * are.
 */
hp_status hp_search_any_strips(hp_arena *arena, hp_eval *e, const hp_space *space, hp_evaluation *found,
                               int64_t *searched, hp_error *err);

/* Where `comm` is all `auto` and the device has several back ends (backends.c): the kinds of traffic that
 * another than the device's own carries faster get it. What counts is the simulated step, not a message
 * alone: one that is hidden by computing gains nothing (MCR-DL, Anthony et al. 2023, chooses by message
 * size). `e` was evaluated to this depth, and is again. hp_search does this to what it returns. */
hp_status hp_search_backends(hp_eval *eval, hp_arena *arena, hp_eval_depth depth, hp_evaluation *e,
                             hp_error *err);

/* The one ranking of candidates. Sorts by what `sort` says (equal ones stay in their order) and marks ties
 * anew: intervals that overlap the one ranked before. Two counts of gpus never tie. */
void hp_search_rank(hp_evaluation *list, int n, hp_sort sort);

#endif
