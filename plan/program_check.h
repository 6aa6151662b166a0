/* program_check.h - the parts of hp_program_check that have files of their own. */
#ifndef HP_PROGRAM_CHECK_H
#define HP_PROGRAM_CHECK_H

#include "plan/program.h"

/* E-CYCLE, E-DEADLOCK: the wait-for graph under synchronous sends (check_waits.c). */
hp_status hp_check_waits(const hp_program *p, const hp_graph *g, hp_error *err);
/* E-OVERLAP: buffers that tasks may use at the same time share no byte (check_memory.c). */
hp_status hp_check_memory(const hp_program *p, hp_error *err);

#endif
