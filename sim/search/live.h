/* live.h - the activations that inference holds at once on one part of a stage, from the graph alone: what no
 * program of such stages can do without. */
#ifndef HP_LIVE_H
#define HP_LIVE_H

#include "plan/strategy/layout.h"
#include "plan/program/program.h"

typedef struct hp_live_part {
    const hp_layout *layout;
    int part;
    int64_t samples; /* of the micro-batch, before it is sliced */
    hp_dtype real;   /* what the program computes in */
} hp_live_part;

/* Per unit (n_unit entries each), the most bytes alive while one of its layers runs: `peak` over all of its
 * layers; `whole` over those that no strip goes through, the first that reads all rows and all after it;
 * 0: none. Only what the part owns and will read counts, and in-place work as often as it could be. */
void hp_live_peaks(const hp_graph *g, const hp_live_part *p, double *peak, double *whole);

#endif
