/* bounds.h - what no schedule can beat, and what a program moves: pure functions of the program and the
 * costs. */
#ifndef HP_BOUNDS_H
#define HP_BOUNDS_H

#include "sim/interp.h"

/* Longest path through dependencies, queues and matched messages when every resource is free: no run is
 * shorter. INT64_MAX when the program cannot end. Cost: linear in tasks and dependencies. */
int64_t hp_sim_critical_path_ns(hp_arena *arena, const hp_program *p, const hp_graph *g,
                                const hp_sim_costs *costs);

/* Bytes sent by all ranks in a step: of all kinds together (plan/program/traffic.h). */
int64_t hp_sim_comm_bytes(const hp_program *p);

#endif
