/* methods.h - internals of balancers: the search methods, and moves that several of them use. */
#ifndef HP_METHODS_H
#define HP_METHODS_H

#include "sim/balance/balance.h"

typedef void balance_search(hp_balance_run *r);
balance_search balance_exact, balance_exhaustive, balance_annealing, balance_climb, balance_walk,
    balance_pipe_search, balance_shisha_h1, balance_shisha_h2, balance_shisha_h3, balance_shisha_h4,
    balance_shisha_h5, balance_shisha_h6;

/* Random number k of a stream, in [0, 1). */
double balance_draw(const hp_balance_run *r, uint64_t stream, uint64_t k);

/* Random cuts and places. Uses all places if there are enough units; takes numbers `k` of streams 1 and 2. */
void balance_random(const hp_balance_run *r, uint64_t k, hp_balance *b);

/* Number of neighbours. A boundary moves by a unit, two stages exchange places, or one takes an empty
 * place. */
int balance_neighbours(const hp_chain *c, const hp_balance *b);
/* Returns false if neighbour `which` is invalid because a stage would be empty. */
bool balance_neighbour(const hp_chain *c, const hp_balance *b, int which, hp_balance *out);

/* Moves one unit from a stage to another: every boundary between them moves by one. Returns false if the
 * stage has only one. */
bool balance_shift(hp_balance *b, int from, int to);

#endif
