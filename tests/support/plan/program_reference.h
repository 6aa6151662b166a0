/* program_reference.h - what a program of messages and collectives must leave in every buffer of every rank: one call
 * after another, element by element, by the definitions of plan/collectives/collective.h alone. */
#ifndef HP_TESTS_PROGRAM_REFERENCE_H
#define HP_TESTS_PROGRAM_REFERENCE_H

#include "tests/support/plan/collective_program.h"

/* An element; it may differ by `bound`, if that is INFINITY it may be anything. */
typedef struct number {
    double value, bound;
} number;

typedef struct program_reference {
    const collective_program *of;
    uint64_t seed;
    number ***at; /* per rank and buffer: its elements at the end */
} program_reference;

program_reference program_reference_make(hp_arena *arena, const collective_program *made, uint64_t seed);
/* What a rank has in an element of a buffer at the beginning: a whole number of its own. */
double program_reference_first(uint64_t seed, int rank, int buffer, int64_t i, hp_dtype t);
/* Has the buffer such elements? How many? */
bool program_reference_covers(const hp_role *r, int buffer);
int64_t program_reference_elems(const hp_buffer *b);

#endif
