/* balance.h - assigns a chain of units to places of different speed: contiguous stages, each on its own
 * place, with the slowest stage as fast as possible. One interface for all search methods; their tries and
 * the cost of these are counted.
 *
 * Places of a class are alike. Some places may stay empty. Sources: Shisha (Soomro et al., online scheduling
 * of CNN pipelines on heterogeneous architectures), and the methods it compares with, as it describes
 * them. */
#ifndef HP_BALANCE_H
#define HP_BALANCE_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum { HP_BALANCE_CLASSES = 3, HP_BALANCE_PLACES = 64, HP_BALANCE_UNITS = 1024 };

typedef struct hp_chain {
    int n_unit, n_class;
    const double *seconds[HP_BALANCE_CLASSES]; /* per unit, on a place of the class */
    const double *bytes;                       /* per unit; NULL: memory does not matter */
    double memory[HP_BALANCE_CLASSES];         /* bytes of a place */
    int places[HP_BALANCE_CLASSES]; /* places per class; places are numbered class by class, fastest class
                                     * first */
} hp_chain;

/* Stages in chain order: number of units, and place. */
typedef struct hp_balance {
    int n_stage;
    int32_t units[HP_BALANCE_PLACES];
    int32_t place[HP_BALANCE_PLACES];
} hp_balance;

int hp_chain_places(const hp_chain *c);
int hp_chain_class(const hp_chain *c, int place);
/* Seconds of the slowest stage; INFINITY if a stage does not fit its place. *slowest: its index; may be
 * NULL. */
double hp_balance_seconds(const hp_chain *c, const hp_balance *b, int *slowest);

/* An improvement: the number of tries so far, and the seconds spent in them, one micro-batch each. */
typedef struct hp_balance_step {
    int64_t tries;
    double spent_s, best_s;
} hp_balance_step;

/* A running search. It may end early: once `tries` reaches most_tries, hp_balance_try returns false. */
typedef struct hp_balance_run {
    const hp_chain *chain;
    hp_arena *arena;
    uint64_t seed;
    int64_t most_tries; /* 0: none */
    int alpha;          /* tries without gain before Shisha stops; 0: 10 */
    int64_t tries;
    double spent_s, best_s; /* best_s is INFINITY until something fits */
    hp_balance best;
    hp_balance_step *curve;
    int n_curve, curve_capacity;
} hp_balance_run;

hp_balance_run hp_balance_start(hp_arena *arena, const hp_chain *c, uint64_t seed, int64_t most_tries);
/* Tries a configuration and adds its time to the time spent. Returns false if enough was tried. */
bool hp_balance_try(hp_balance_run *r, const hp_balance *b, double *seconds);

typedef struct hp_balancer {
    const char *name, *what;
    bool exact;  /* its answer is optimal unless most_tries stopped it */
    bool online; /* learns only from the times of its tries; others know the whole chain in advance */
    void (*search)(hp_balance_run *r);
} hp_balancer;

/* All methods; the first is the exact dynamic programme. */
extern const hp_balancer hp_balancers[];
extern const int hp_n_balancers;
const hp_balancer *hp_balancer_find(const char *name);

/* Number of configurations: contiguous stages on distinct places, where places of a class are alike. */
double hp_balance_space(const hp_chain *c);

#endif
