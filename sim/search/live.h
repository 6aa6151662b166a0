/* live.h - activations that inference holds at once on one part of a stage, derived from the graph alone: a
 * lower bound for any program of such stages. */
#ifndef HP_LIVE_H
#define HP_LIVE_H

#include "plan/strategy/layout.h"
#include "plan/program/program.h"

typedef struct hp_live_part {
    const hp_layout *layout;
    int part;
    int64_t samples; /* samples of the micro-batch before slicing */
    hp_dtype real;   /* type in which the program computes */
} hp_live_part;

/* Per unit (n_unit entries each), the most live bytes while one of its layers runs. `peak`: over all its
 * layers; `whole`: over those that no strip passes through, which are the first layer that reads all rows and
 * all later ones; 0: none. Counts only what the part owns and will still read, and assumes work in place
 * wherever possible. */
void hp_live_peaks(const hp_graph *g, const hp_live_part *p, double *peak, double *whole);

#endif
