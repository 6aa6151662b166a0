/* program_reference.h - what a program of messages and collectives must leave in every buffer of every rank:
 * call by call, element by element, only by the definitions of plan/collectives/collective.h. */
#ifndef HP_TESTS_PROGRAM_REFERENCE_H
#define HP_TESTS_PROGRAM_REFERENCE_H

#include "tests/support/plan/collective_program.h"

/* An element; it may differ by `bound`. If `bound` is INFINITY, it may be anything. */
typedef struct number {
    double value, bound;
} number;

typedef struct program_reference {
    const collective_program *of;
    uint64_t seed;
    number ***at; /* per rank and buffer: its elements at the end */
} program_reference;

program_reference program_reference_make(hp_arena *arena, const collective_program *made, uint64_t seed);
/* Initial value of a rank in an element of a buffer: an integer of its own. */
double program_reference_first(uint64_t seed, int rank, int buffer, int64_t i, hp_dtype t);
/* Does the buffer have such elements? How many? */
bool program_reference_covers(const hp_role *r, int buffer);
int64_t program_reference_elems(const hp_buffer *b);

#endif
