/* comm_panels.h - the collectives of a cost table as what `plot comm` draws. */
#ifndef HP_COMM_PANELS_H
#define HP_COMM_PANELS_H

#include "plots/plots.h"

/* Reads the cost table of FILE.cost, or the one in a plan.db or run.db. Errors: HP_EDATA. */
hp_status comm_panels_read(hp_arena *arena, const char *path, hp_plot_comm_source *out, hp_error *err);

#endif
