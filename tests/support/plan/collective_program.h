/* collective_program.h - small programs of messages and collectives alone, drawn at random: roles and replicas, groups
 * that overlap, every collective in every type by every algorithm that does it, several in flight. */
#ifndef HP_TESTS_COLLECTIVE_PROGRAM_H
#define HP_TESTS_COLLECTIVE_PROGRAM_H

#include "tests/support/plan/random_groups.h"

/* A message or a collective: the task of each role that takes part, -1 of the others. */
typedef struct made_call {
    int32_t group; /* -1: a message */
    int32_t from, to;
    int32_t *task;
} made_call;

typedef struct collective_program {
    hp_program *p;
    hp_graph *g; /* of which nothing is computed */
    int n_call;
    made_call *call; /* one after the other, all of them could be done */
} collective_program;

/* On exactly `ranks` ranks, at most 8; by `backends`, bits 1 << hp_backend. */
collective_program collective_program_draw(hp_arena *arena, uint64_t seed, int ranks, uint32_t backends);

/* --- pieces, for programs that are changed --- */

/* Could an algorithm of the back end run it? LIBRARY where the back end has its own. */
bool made_algorithm_fits(const hp_program *p, const hp_role *r, const hp_task *t, int algorithm);
/* Adds a call to the program; returns what hp_task.call says of it. `part` has room.n elements. */
int32_t made_call_add(hp_arena *arena, hp_program *p, hp_call call, const int64_t *part);

#endif
