/* link_fit.h - measured latency and rate of the links between nodes, relative to their data sheet. */
#ifndef HP_LINK_FIT_H
#define HP_LINK_FIT_H

#include "costmodels/cost_rows.h"

/* Is it the class of the links between nodes, on a machine that has several? */
bool hp_link_leaves(const hp_machine *m, const char *class);

/* Adds the link row of the machine's `inter`: latency and rate of a line through the messages measured over
 * it (MPI's if there are several), as fractions of the machine's. Does nothing without messages. The table's
 * rows are sorted before and after. */
void hp_link_fit_row(hp_cost_table *t, const hp_machine *m);

#endif
