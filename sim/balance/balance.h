/* balance.h - a chain of units over places of unlike speed: contiguous stages, each on a place of its own, the slowest stage as
 * fast as possible. One interface for all ways of searching; what they tried and what that would have cost is counted.
 *
 * Places of a class are alike. Some places may stay empty. Sources: Shisha (Soomro et al., online scheduling of CNN pipelines
 * on heterogeneous architectures), its comparison's other methods as it describes them. */
#ifndef HP_BALANCE_H
#define HP_BALANCE_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum { HP_BALANCE_CLASSES = 3, HP_BALANCE_PLACES = 64, HP_BALANCE_UNITS = 1024 };

typedef struct hp_chain {
    int n_unit, n_class;
    const double *seconds[HP_BALANCE_CLASSES]; /* of each unit on a place of the class */
    const double *bytes;                       /* of each unit; NULL: memory does not matter */
    double memory[HP_BALANCE_CLASSES];         /* bytes of a place */
    int places[HP_BALANCE_CLASSES]; /* of each class: numbered class by class, the fastest class first */
} hp_chain;

/* Stages in the chain's order: how many units, on which place. */
typedef struct hp_balance {
    int n_stage;
    int32_t units[HP_BALANCE_PLACES];
    int32_t place[HP_BALANCE_PLACES];
} hp_balance;

int hp_chain_places(const hp_chain *c);
int hp_chain_class(const hp_chain *c, int place);
/* Seconds of the slowest stage; INFINITY: a stage does not fit its place. *slowest: which it is; may be NULL. */
double hp_balance_seconds(const hp_chain *c, const hp_balance *b, int *slowest);

/* A better one was found: after how many tries, and after how many seconds spent in what was tried, a micro-batch each. */
typedef struct hp_balance_step {
    int64_t tries;
    double spent_s, best_s;
} hp_balance_step;

/* A search on its way. It may end early: when `tries` reaches most_tries, hp_balance_try says false. */
typedef struct hp_balance_run {
    const hp_chain *chain;
    hp_arena *arena;
    uint64_t seed;
    int64_t most_tries; /* 0: none */
    int alpha;          /* tries without gain after which Shisha stops; 0: 10 */
    int64_t tries;
    double spent_s, best_s; /* INFINITY: nothing that fits */
    hp_balance best;
    hp_balance_step *curve;
    int n_curve, curve_capacity;
} hp_balance_run;

hp_balance_run hp_balance_start(hp_arena *arena, const hp_chain *c, uint64_t seed, int64_t most_tries);
/* Tries one: what it takes is added to what was spent. False: enough was tried. */
bool hp_balance_try(hp_balance_run *r, const hp_balance *b, double *seconds);

typedef struct hp_balancer {
    const char *name, *what;
    bool exact;  /* its answer is the best there is, unless most_tries stopped it */
    bool online; /* it learns from times of what was tried alone; others know all of the chain before */
    void (*search)(hp_balance_run *r);
} hp_balancer;

/* All of them; the first is the exact dynamic programme. */
extern const hp_balancer hp_balancers[];
extern const int hp_n_balancers;
const hp_balancer *hp_balancer_find(const char *name);

/* How many configurations there are: contiguous stages on distinct places, those of a class alike. */
double hp_balance_space(const hp_chain *c);

#endif
