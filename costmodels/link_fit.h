/* link_fit.h - what the links between nodes are, of what their data sheet says. */
#ifndef HP_LINK_FIT_H
#define HP_LINK_FIT_H

#include "costmodels/cost_rows.h"

/* Is it the class of the links between the nodes of a machine that has several? */
bool hp_link_leaves(const hp_machine *m, const char *class);

/* Adds the link row of the machine's `inter`, from the measured messages over it (MPI's where there are several): the
 * latency and the rate of a line through them, as fractions of the machine's. Where there are none, nothing. The table's
 * rows are sorted before and after. */
void hp_link_fit_row(hp_cost_table *t, const hp_machine *m);

#endif
