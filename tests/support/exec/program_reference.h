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
/* What a rank begins with: numbers of its own in every buffer, between them bytes that nobody may write. */
void program_reference_fill(const program_reference *f, int rank, unsigned char *at);
/* Does it end with what it should? *known: elements that are not just anything. */
hp_status program_reference_check(const program_reference *f, int rank, const unsigned char *at,
                                  int64_t *known, hp_error *err);

#endif
