/* fastest.h - which of several measured lines is the lowest, by size: the crossover of algorithms and back ends. */
#ifndef HP_FASTEST_H
#define HP_FASTEST_H

#include "costmodels/cost_rows.h"

/* From `bytes` on, up to the next one's, this row is the fastest. */
typedef struct hp_fastest {
    double bytes;
    int row;
} hp_fastest;

/* Of n rows that are lines, by increasing size, from the smallest measured size on; between its points a row is linear,
 * beyond them it is not known. Equal ones: the first, as long as it is as fast. Returns how many there are, in `arena`. */
int hp_fastest_of(hp_arena *arena, const hp_row *const *row, int n, hp_fastest **out);

/* A row's time at a size; NaN: not measured there. */
double hp_row_at(const hp_row *row, double bytes);

/* The sizes of n rows, increasing, each once. Returns how many, in `arena`. */
int hp_row_sizes(hp_arena *arena, const hp_row *const *row, int n, double **out);
/* Where `to` becomes faster than `from` between sizes a and b, between which both are linear; b where one was not measured
 * at a. */
double hp_row_crossing(const hp_row *from, const hp_row *to, double a, double b);

/* Rows of one operation among as many ranks, placed alike. */
typedef struct hp_rivals {
    hp_collective what;
    int32_t ranks, per_node;
    const char *class;
    int n, capacity;
    const hp_row **row;
    hp_collective_call *call; /* of each row */
} hp_rivals;

/* The collectives of a table (without those it falls back on) of which `wanted` (NULL: all); sorted by operation, ranks
 * and ranks per node. Returns how many groups, in `arena`. */
int hp_rivals_of(hp_arena *arena, const hp_cost_table *t, bool (*wanted)(const hp_collective_call *c),
                 hp_rivals **out);

#endif
