/* memory_bars.h - what fills each rank's memory, for the plot of it. */
#ifndef HP_MEMORY_BARS_H
#define HP_MEMORY_BARS_H

#include "plots/plots.h"

/* Adds to `s` the parts of each rank's memory and what a rank has; nothing if the file at `path` holds no
 * plan. */
void memory_bars_read(hp_arena *arena, const char *path, hp_plot_source *s);

#endif
