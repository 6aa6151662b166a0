/* lanes_order.h - the order of all ranks' tasks that lanes follow. */
#ifndef HP_LANES_ORDER_H
#define HP_LANES_ORDER_H

#include "plan/program/lanes.h"
#include "plan/program/wiring.h"

/* One role's tasks in the joint order, and their lanes. */
typedef struct hp_lane_order {
    int32_t n, *task; /* old ids; the members of a lane stand side by side */
    int32_t *lane;    /* per old id: number of its lane, counted over all streams and roles; -1 */
} hp_lane_order;

/* Returns NULL where tasks wait in a circle. */
hp_lane_order *hp_lanes_order(hp_arena *arena, const hp_wiring *w, const hp_graph *g);

#endif
