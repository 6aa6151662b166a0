/* collective.c - the tables of collectives and algorithms, the bytes that a collective must move, and the
 * default choice without measurements. */
#include "plan/collectives/collective.h"

#include <string.h>

#include "plan/collectives/algorithms.h"

#define ALL  HP_BLOCKS_ALL
#define OWN  HP_BLOCKS_OWN
#define ROOT HP_BLOCKS_ROOT
#define EACH HP_BLOCKS_EACH
enum { MOVES, ADDS };

const hp_collective_info hp_collective_infos[HP_COLLECTIVES] = {
#define COLLECTIVE(ID, name, begins, ends, adds, passes) {name, begins, ends, adds, passes},
#include "plan/collectives/collectives.def"
};

const char *const hp_reduction_names[HP_REDUCTIONS + 1] = {"sum", "min", "max", "avg", NULL};

static const hp_algorithm_ops library = {.name = "library"};

const hp_algorithm_ops *const hp_algorithms[HP_ALGORITHMS] = {
    &library,
#define ALGORITHM(ID, id) &hp_collective_##id,
#include "plan/collectives/algorithms.def"
};

double hp_collective_bus_factor(hp_collective c, int32_t n) {
    const int32_t passes = hp_collective_infos[c].passes;
    return passes ? passes * (double)(n - 1) / n : 1;
}

/* Each block with a fixed place moves once. Sending all the data to all members, or summing it at one, moves
 * n - 1 times the data in total. An all-reduce does both. */
double hp_collective_volume(hp_collective c, int32_t n) {
    const double others = n > 1 ? (double)(n - 1) / n : 0;
    if (c == HP_COLLECTIVE_BARRIER) return 0;
    if (c == HP_COLLECTIVE_ALLREDUCE) return 2 * others;
    return hp_collective_rooted(c) && hp_collective_parts(c) ? others / n : others;
}

int hp_collective_find(const char *name) {
    for (int c = 0; c < HP_COLLECTIVES; c++)
        if (strcmp(hp_collective_infos[c].name, name) == 0) return c;
    return -1;
}

int hp_algorithm_find(const char *name) {
    for (int a = 0; a < HP_ALGORITHMS; a++)
        if (strcmp(hp_algorithms[a]->name, name) == 0) return a;
    return -1;
}

bool hp_algorithm_does(hp_algorithm a, const hp_collective_case *c, bool even) {
    const hp_algorithm_ops *ops = hp_algorithms[a];
    const uint32_t what = 1u << c->what;
    return (ops->does & what) && (even || !(ops->even & what)) && (!ops->fits || ops->fits(c));
}

int32_t hp_algorithm_blocks(hp_algorithm a, const hp_collective_case *c) {
    const hp_algorithm_ops *ops = hp_algorithms[a];
    if (c->what == HP_COLLECTIVE_ALL_TO_ALL) return 2 * c->size;
    return ops->blocks ? ops->blocks(c) : c->size;
}

int32_t hp_one_block(const hp_collective_case *c) {
    (void)c;
    return 1;
}

/* Up to SHORT_BYTES, few steps are assumed to beat few bytes. The value did well for an all-reduce of 2 ranks
 * on one node (Open MPI 4.1.4); it does not come from a sweep. Up to LONG_BYTES (four slices of
 * collective_elements.c), data has too few slices to pipeline through a tree, or to repay sending it
 * twice. */
enum { SHORT_BYTES = 32 << 10, LONG_BYTES = 1 << 20 };

/* The first matching row wins; the last one of each collective always matches. */
static const struct choice {
    hp_collective what;
    hp_algorithm algorithm;
    int64_t up_to_bytes;
} choices[] = {
    {HP_COLLECTIVE_ALLREDUCE, HP_ALGORITHM_DOUBLING, SHORT_BYTES},
    {HP_COLLECTIVE_ALLREDUCE, HP_ALGORITHM_TWO_LEVELS, INT64_MAX},
    {HP_COLLECTIVE_ALLREDUCE, HP_ALGORITHM_RING, INT64_MAX},
    {HP_COLLECTIVE_REDUCE_SCATTER, HP_ALGORITHM_RABENSEIFNER, SHORT_BYTES},
    {HP_COLLECTIVE_REDUCE_SCATTER, HP_ALGORITHM_TWO_LEVELS, INT64_MAX},
    {HP_COLLECTIVE_REDUCE_SCATTER, HP_ALGORITHM_RING, INT64_MAX},
    {HP_COLLECTIVE_ALL_GATHER, HP_ALGORITHM_BRUCK, SHORT_BYTES},
    {HP_COLLECTIVE_ALL_GATHER, HP_ALGORITHM_TWO_LEVELS, INT64_MAX},
    {HP_COLLECTIVE_ALL_GATHER, HP_ALGORITHM_RING, INT64_MAX},
    {HP_COLLECTIVE_ALL_TO_ALL, HP_ALGORITHM_BRUCK, SHORT_BYTES},
    {HP_COLLECTIVE_ALL_TO_ALL, HP_ALGORITHM_TWO_LEVELS, LONG_BYTES},
    {HP_COLLECTIVE_ALL_TO_ALL, HP_ALGORITHM_PAIRWISE, INT64_MAX},
    {HP_COLLECTIVE_BROADCAST, HP_ALGORITHM_TWO_LEVELS, LONG_BYTES},
    {HP_COLLECTIVE_BROADCAST, HP_ALGORITHM_BINOMIAL, LONG_BYTES},
    {HP_COLLECTIVE_BROADCAST, HP_ALGORITHM_TWO_TREES, INT64_MAX},
    {HP_COLLECTIVE_REDUCE, HP_ALGORITHM_TWO_LEVELS, LONG_BYTES},
    {HP_COLLECTIVE_REDUCE, HP_ALGORITHM_BINOMIAL, LONG_BYTES},
    {HP_COLLECTIVE_REDUCE, HP_ALGORITHM_TWO_TREES, INT64_MAX},
    {HP_COLLECTIVE_GATHER, HP_ALGORITHM_BINOMIAL, INT64_MAX},
    {HP_COLLECTIVE_SCATTER, HP_ALGORITHM_BINOMIAL, INT64_MAX},
    {HP_COLLECTIVE_BARRIER, HP_ALGORITHM_BRUCK, INT64_MAX},
};

hp_algorithm hp_algorithm_choose(const hp_collective_case *c, int64_t bytes, bool even) {
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const struct choice *row = &choices[i];
        if (row->what == c->what && bytes <= row->up_to_bytes && hp_algorithm_does(row->algorithm, c, even))
            return row->algorithm;
    }
    return HP_ALGORITHM_LIBRARY;
}
