/* check.h - proves a program safe before it runs, or after it was read from a file. */
#ifndef HP_CHECK_H
#define HP_CHECK_H

#include "plan/program/wiring.h"

/* Proves that:
 * - ids are in range and dependencies acyclic;
 * - buffers of tasks that may overlap in time are disjoint;
 * - every send has a receive of the same count, type and tag, in the same order;
 * - all members call collectives in the same order with the same counts;
 * - the wait-for graph has no cycle even if every send is synchronous (completes only once its receive is
 *   posted).
 * Errors: HP_EPLAN. The message names the ranks and the check's code (E-RANGE, E-CYCLE, E-MATCH, E-COUNT,
 * E-TYPE, E-ORDER, E-DEADLOCK, E-LANE, E-OVERLAP, E-RACE, E-BOX, E-UNSET, E-LOST). */
hp_status hp_program_check(const hp_program *p, const hp_graph *g, hp_error *err);

/* E-CYCLE, E-DEADLOCK: the wait-for graph under synchronous sends. */
hp_status hp_check_waits(const hp_wiring *w, const hp_graph *g, hp_error *err);

#endif
