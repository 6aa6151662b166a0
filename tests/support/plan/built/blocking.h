/* blocking.h - a program whose tasks run one after another. */
#ifndef HP_TESTS_BLOCKING_H
#define HP_TESTS_BLOCKING_H

#include "plan/program/program.h"
#include "base/arena.h"

/* The same program as if every call were blocking: each task also waits for the one before it in the list.
 * (MPI_Send/MPI_Recv in program order: what a naive implementation does.) */
hp_program *program_blocking(hp_arena *arena, const hp_program *p);

#endif
