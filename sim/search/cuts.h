/* cuts.h - where to cut a network into stages of different width: four tiles are four times as fast as one
 * rank. */
#ifndef HP_CUTS_H
#define HP_CUTS_H

#include "sim/search/search_parts.h"
#include "sim/search/unlike.h"
#include "plan/lower/lower.h"

typedef enum hp_cut_kind {
    HP_CUT_TIME,  /* minimises the slowest stage, for full pipelines */
    HP_CUT_SEAM,  /* puts as much as possible on the spatial stages, for one batch after another */
    HP_CUT_MEMORY /* the largest stage as small as possible */
} hp_cut_kind;

/* Cost of units on each of a machine's device classes. */
typedef struct hp_cut_costs {
    const hp_machine *machine;
    hp_parts *of_class[1 + HP_MORE_CLASSES];
} hp_cut_costs;

/* Are all stages equally wide, on equal devices? Then plain balancing by cost (hp_lower_options.unit_cost) is
 * right. */
bool hp_cut_is_plain(const hp_strategy *s, const hp_machine *m);

/* Units per virtual stage (stages * chunks entries); micro_batch: its samples before slicing. */
void hp_cut_stages(const hp_cut_costs *costs, const hp_graph *g, const hp_strategy *s, int64_t micro_batch,
                   hp_cut_kind kind, bool eager, int32_t *counts);

#endif
