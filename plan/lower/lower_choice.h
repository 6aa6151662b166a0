/* lower_choice.h - what comm=auto means where collectives were measured: a back end and algorithm per class
 * of sizes. */
#ifndef HP_LOWER_CHOICE_H
#define HP_LOWER_CHOICE_H

#include "plan/collectives/collective.h"

/* Data of up to so many bytes, and more than the row before has. */
typedef struct hp_comm_class {
    hp_collective what;
    int32_t ranks, per_node; /* members fill node after node, so many each */
    int64_t up_to_bytes;     /* size of the whole data; INT64_MAX: the last class */
    int32_t choice;          /* hp_comm_choice; HP_COMM_AUTO: the device's own back end, by the rule */
} hp_comm_class;

/* Classes of the same operation, ranks and ranks per node stand together, by increasing sizes. The rule
 * decides cases that the table lacks. Made from a cost table by costmodels/tuning/size_classes.h. */
typedef struct hp_comm_table {
    int32_t n;
    hp_comm_class *row;
} hp_comm_table;

/* t: NULL: an empty one. */
int32_t hp_comm_table_choice(const hp_comm_table *t, const hp_collective_case *c, int64_t bytes);

#endif
