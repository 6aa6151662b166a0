/* check.h - what is proved of a program before it runs, or after it was read from a file. */
#ifndef HP_CHECK_H
#define HP_CHECK_H

#include "plan/program/wiring.h"

/* Proves: ids in range; dependencies acyclic; buffers of tasks that may overlap in time disjoint; every send
 * matched by a receive of the same count, type and tag in the same order; collectives in the same order with
 * the same counts on all members; no cycle in the wait-for graph when every send is synchronous (completes
 * only once its receive is posted). Errors: HP_EPLAN, the message names the check's code (E-RANGE, E-CYCLE,
 * E-MATCH, E-COUNT, E-TYPE, E-ORDER, E-DEADLOCK, E-LANE, E-OVERLAP, E-RACE, E-BOX, E-UNSET, E-LOST) and the
 * ranks. */
hp_status hp_program_check(const hp_program *p, const hp_graph *g, hp_error *err);

/* E-CYCLE, E-DEADLOCK: the wait-for graph under synchronous sends. */
hp_status hp_check_waits(const hp_wiring *w, const hp_graph *g, hp_error *err);

#endif
