/* collective_program.h - random small programs with only messages and collectives: roles and
 * replicas, overlapping groups, every collective in every type by every algorithm that supports it,
 * several in flight. */
#ifndef HP_TESTS_COLLECTIVE_PROGRAM_H
#define HP_TESTS_COLLECTIVE_PROGRAM_H

#include "tests/support/plan/random_groups.h"

/* A message or a collective: the task of each participating role, -1 for the others. */
typedef struct made_call {
    int32_t group; /* -1: a message */
    int32_t from, to;
    int32_t *task;
} made_call;

typedef struct collective_program {
    hp_program *p;
    hp_graph *g; /* a graph of which nothing is computed */
    int n_call;
    made_call *call; /* in an order in which all could run one by one */
} collective_program;

/* Draws a program for exactly `ranks` ranks, at most 8; `backends`: bits 1 << hp_backend. */
collective_program collective_program_draw(hp_arena *arena, uint64_t seed, int ranks, uint32_t backends);

/* --- pieces, for programs to be changed --- */

/* Could an algorithm of the back end run it? LIBRARY if the back end has its own. */
bool made_algorithm_fits(const hp_program *p, const hp_role *r, const hp_task *t, int algorithm);
/* Adds a call to the program; returns what hp_task.collective.call says of it. `part` has room.n elements. */
int32_t made_call_add(hp_arena *arena, hp_program *p, hp_call call, const int64_t *part);

#endif
