/* lower_choice.h - how a collective is done: as the strategy says, or with comm=auto as measurements of its
 * class of sizes or the rule say. */
#ifndef HP_LOWER_CHOICE_H
#define HP_LOWER_CHOICE_H

#include "plan/collectives/collective.h"
#include "plan/strategy/backend.h"

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

/* What decides for all collectives of a program. */
typedef struct hp_comm_chooser {
    const int32_t *comm; /* HP_TRAFFICS hp_comm_choice, as a strategy has them; NULL: all are HP_COMM_AUTO */
    int32_t clients;
    const hp_comm_table *table;   /* NULL: an empty one */
    const hp_device_info *device; /* NULL: one that has all back ends */
} hp_comm_chooser;

typedef struct hp_comm_way {
    hp_backend by;
    hp_algorithm algorithm; /* HP_ALGORITHM_LIBRARY: the back end decides */
} hp_comm_way;

/* The way of one collective of that traffic: lowering and estimates ask here. Measurements hold for
 * members that fill their nodes, `what->per_node` on each. */
hp_comm_way hp_comm_way_of(const hp_comm_chooser *c, hp_traffic traffic, const hp_collective_case *what,
                           bool fills_nodes, int64_t bytes);

#endif
