/* integer_ranks.h - a program's data movement on integers: all ranks of one replica, no kernels.
 *
 * Layers only read and write. A forward task writes a fixed function of positions, not of what it read; a
 * backward task likewise writes fixed gradients of what it read. In between, COPY, ZERO, ACCUM, SEND and RECV
 * are the linear map from what ranks computed to what layers read, and its adjoint. Tasks run in the order
 * that the program promises and no better. They follow their queue's order and their dependencies. Sends are
 * synchronous, collectives run once all members call; compute tasks run as early and messages as late as
 * possible. Memory is the program's own arena. */
#ifndef HP_TESTS_INTEGER_RANKS_H
#define HP_TESTS_INTEGER_RANKS_H

#include "base/arena.h"
#include "plan/program/program.h"
#include "plan/program/print.h"

#include <string.h>

/* What a layer read as one of its inputs, or (k < 0) the gradient that it received: the sum over its elements
 * of the value times the other side of the inner product. */
typedef struct seen {
    hp_box box;
    int32_t k;
    bool known;    /* somebody read it */
    bool answered; /* a backward task wrote its gradient */
    int64_t sum;
    struct seen *next;
} seen;

typedef struct integer_ranks {
    hp_arena *arena;
    const hp_graph *g;
    const hp_program *p; /* in float64: an element has the bytes of an integer */
    bool by_rank;        /* do two ranks compute different values for the same element? */
    int64_t **memory;    /* per rank: its tensors, from byte `base` of its arena on */
    int64_t *base;
    bool **done;                     /* per task */
    int32_t **first, **list, **head; /* per queue: its tasks; the next one */
    seen **seen;                     /* [(role * (n_layer + 1) + layer) * micro + m] */
    int64_t *ahead, *back;           /* per tensor and micro-batch: <A x, y>, <x, A'y> */
    bool *used;                      /* per tensor: its gradient is read */
    char why[200];                   /* what is wrong; empty: nothing */
} integer_ranks;

integer_ranks *integer_ranks_new(hp_arena *arena, const hp_graph *g, const hp_program *p, bool by_rank);

/* Runs the program to its end. False: `why` tells what is wrong. */
bool integer_ranks_run(integer_ranks *s);

#endif
