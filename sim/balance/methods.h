/* methods.h - inside of balancers: the ways of searching, and moves that several of them make. */
#ifndef HP_METHODS_H
#define HP_METHODS_H

#include "sim/balance/balance.h"

typedef void balance_search(hp_balance_run *r);
balance_search balance_exact, balance_exhaustive, balance_annealing, balance_climb, balance_walk,
    balance_pipe_search, balance_shisha_h1, balance_shisha_h2, balance_shisha_h3, balance_shisha_h4,
    balance_shisha_h5, balance_shisha_h6;

/* Draws k of a stream, in [0, 1). */
double balance_draw(const hp_balance_run *r, uint64_t stream, uint64_t k);

/* Random cuts and places, all places in use where there are units enough; streams 1 and 2 at `k`. */
void balance_random(const hp_balance_run *r, uint64_t k, hp_balance *b);

/* Neighbours: a boundary moves by a unit, two stages exchange places, or one takes a place that is empty. */
int balance_neighbours(const hp_chain *c, const hp_balance *b);
/* False: that one is none (a stage would be empty). */
bool balance_neighbour(const hp_chain *c, const hp_balance *b, int which, hp_balance *out);

/* One unit goes from a stage to another: every boundary between them moves by one. False: the stage has only one. */
bool balance_shift(hp_balance *b, int from, int to);

#endif
