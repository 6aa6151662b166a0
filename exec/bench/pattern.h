/* pattern.h - test data whose every element tells its rank and position, and the results
 * expected of it. Pure. */
#ifndef HP_PATTERN_H
#define HP_PATTERN_H

#include "exec/bench/setup.h"

typedef struct hp_bench_case {
    int32_t what; /* an hp_collective other than BARRIER, or HP_BENCH_SENDRECV */
    int ranks, me, root;
    hp_dtype dtype;
    hp_reduction reduction;
    int64_t count; /* elements of the whole data; a multiple of ranks where members have
                    * blocks of their own */
} hp_bench_case;

/* What `rank` contributes to element i of the whole: a small whole number, different for every rank as far as
 * the type allows. Sums over up to 128 ranks are exact in every type, in any order. */
double hp_bench_value(const hp_bench_case *c, int rank, int64_t i);

/* Range [*first, *first + *n) of the whole that `me` contributes, and that it has at the end. */
void hp_bench_begins(const hp_bench_case *c, int64_t *first, int64_t *n);
void hp_bench_ends(const hp_bench_case *c, int64_t *first, int64_t *n);

/* Fills the buffers with this rank's contribution: `source` without gaps if it is not NULL, else its place in
 * `data`. Everything else is set to 0xff. Both have room for the whole. */
void hp_bench_fill(const hp_bench_case *c, void *data, void *source);

/* Number of wrong elements among those that this rank has at the end. */
int64_t hp_bench_wrong(const hp_bench_case *c, const void *data);

#endif
