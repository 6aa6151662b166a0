/* size_classes.h - the meaning of comm=auto on a machine whose collectives were measured. */
#ifndef HP_SIZE_CLASSES_H
#define HP_SIZE_CLASSES_H

#include "costmodels/cost_rows.h"
#include "plan/lower/lower_choice.h"

/* For every operation, ranks and ranks per node, finds the fastest back end of the device by size, and the
 * algorithm for hplan's own steps.
 *
 * Unmeasured rows neither win nor lose. If the table has no row for comm=auto's own choice, or nothing is 2 %
 * faster, that choice stays. Below the first and above the last measured size, the nearest class continues as
 * long as the rule takes the same row. `device` NULL: no classes. In `arena`. */
hp_comm_table *hp_size_classes(hp_arena *arena, const hp_cost_table *t, const hp_machine *m,
                               const hp_device_info *device);

#endif
