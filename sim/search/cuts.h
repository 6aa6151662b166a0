/* cuts.h - where to cut a network into stages of unequal width: four tiles are four times as fast as one
 * rank. */
#ifndef HP_CUTS_H
#define HP_CUTS_H

#include "sim/search/search_parts.h"
#include "sim/search/unlike.h"
#include "plan/lower/lower.h"

typedef enum hp_cut_kind {
    HP_CUT_TIME,  /* the slowest stage as fast as possible: what fills pipelines */
    HP_CUT_SEAM,  /* as much as possible on the spatial stages: what is best for one batch after another */
    HP_CUT_MEMORY /* the largest stage as small as possible */
} hp_cut_kind;

/* What units cost on each of a machine's classes of devices. */
typedef struct hp_cut_costs {
    const hp_machine *machine;
    hp_parts *of_class[1 + HP_MORE_CLASSES];
} hp_cut_costs;

/* Are all stages equally wide, on equal devices? Then plain balancing by cost (hp_lower_options.unit_cost) is right. */
bool hp_cut_is_plain(const hp_strategy *s, const hp_machine *m);

/* Units per virtual stage (stages * chunks entries); micro_batch: samples of one before it is sliced. */
void hp_cut_stages(const hp_cut_costs *costs, const hp_graph *g, const hp_strategy *s, int64_t micro_batch,
                   hp_cut_kind kind, bool eager, int32_t *counts);

#endif
