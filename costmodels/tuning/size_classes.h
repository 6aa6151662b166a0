/* size_classes.h - what comm=auto shall mean on a machine whose collectives were measured. */
#ifndef HP_SIZE_CLASSES_H
#define HP_SIZE_CLASSES_H

#include "costmodels/cost_rows.h"
#include "plan/lower/lower_choice.h"

/* For every operation, ranks and ranks per node: from size to size the back end of the device, and of hplan's own steps the
 * algorithm, that is fastest. What was not measured cannot win, nor win against: where the table has no row of what
 * comm=auto would take anyway, that stays, and so it does where nothing is 2 % faster. Before the first measured size and
 * after the last one what holds there goes on, as long as the rule does not take something else. `device` NULL: no classes. In `arena`. */
hp_comm_table *hp_size_classes(hp_arena *arena, const hp_cost_table *t, const hp_machine *m,
                               const hp_device_info *device);

#endif
