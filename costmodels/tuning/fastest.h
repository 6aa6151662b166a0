/* fastest.h - which of several measured lines is the lowest, by size: the crossovers of algorithms and back
 * ends. */
#ifndef HP_FASTEST_H
#define HP_FASTEST_H

#include "costmodels/cost_rows.h"

/* From `bytes` up to the next entry's, this row is the fastest. */
typedef struct hp_fastest {
    double bytes;
    int row;
} hp_fastest;

/* Finds the fastest of n rows that are lines, by increasing size, starting at the smallest measured size. A
 * row is linear between its points and unknown beyond them. Among equal rows, the first stays chosen while it
 * is as fast. Returns the number of entries, in `arena`. */
int hp_fastest_of(hp_arena *arena, const hp_row *const *row, int n, hp_fastest **out);

/* A row's time at a size; NaN if not measured there. */
double hp_row_at(const hp_row *row, double bytes);

/* The distinct sizes of n rows in increasing order. Returns their number, in `arena`. */
int hp_row_sizes(hp_arena *arena, const hp_row *const *row, int n, double **out);
/* Size where `to` becomes faster than `from` between sizes a and b, between which both are linear; b if one
 * was not measured at a. */
double hp_row_crossing(const hp_row *from, const hp_row *to, double a, double b);

/* Rows of one operation among equally many ranks with the same placement. */
typedef struct hp_rivals {
    hp_collective what;
    int32_t ranks, per_node;
    const char *class;
    int n, capacity;
    const hp_row **row;
    hp_collective_call *call; /* the call of each row */
} hp_rivals;

/* Groups the collectives of a table (without its fallbacks) that `wanted` accepts (NULL: all), sorted by
 * operation, ranks and ranks per node. Returns the number of groups, in `arena`. */
int hp_rivals_of(hp_arena *arena, const hp_cost_table *t, bool (*wanted)(const hp_collective_call *c),
                 hp_rivals **out);

#endif
