/* pattern.h - data whose every element says whose it is and where it belongs, and what must come of it. Pure. */
#ifndef HP_PATTERN_H
#define HP_PATTERN_H

#include "exec/bench/setup.h"

typedef struct hp_bench_case {
    int32_t what; /* hp_collective but BARRIER, or HP_BENCH_SENDRECV */
    int ranks, me, root;
    hp_dtype dtype;
    hp_reduction reduction;
    int64_t count; /* of the whole data; where members have places of their own, a multiple of ranks */
} hp_bench_case;

/* What `rank` contributes to element i of the whole: a small whole number, another one for every rank as far as the type
 * has so many. Up to 128 ranks sums are exact in every type, whatever the order of the additions. */
double hp_bench_value(const hp_bench_case *c, int rank, int64_t i);

/* Elements [*first, *first + *n) of the whole: those that `me` contributes, those that it has at the end. */
void hp_bench_begins(const hp_bench_case *c, int64_t *first, int64_t *n);
void hp_bench_ends(const hp_bench_case *c, int64_t *first, int64_t *n);

/* Fills `data`, and what is not NULL of `source`, with what this rank contributes: in `source` if there is one, without
 * gaps, else at its place in `data`; all else is 0xff. Both have room for the whole. */
void hp_bench_fill(const hp_bench_case *c, void *data, void *source);

/* How many elements of those that this rank has at the end are not what they must be. */
int64_t hp_bench_wrong(const hp_bench_case *c, const void *data);

#endif
