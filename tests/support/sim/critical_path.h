/* critical_path.h - what no schedule can beat: a pure function of the program and the costs. */
#ifndef HP_TESTS_CRITICAL_PATH_H
#define HP_TESTS_CRITICAL_PATH_H

#include "sim/engine/sim.h"

/* Longest path through dependencies, queues and matched messages when every resource is free: no run is
 * shorter. INT64_MAX when the program cannot end. Cost: linear in tasks and dependencies. */
int64_t critical_path_ns(hp_arena *arena, const hp_program *p, const hp_graph *g, const hp_sim_costs *costs);

#endif
