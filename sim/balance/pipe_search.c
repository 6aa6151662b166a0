/* pipe_search.c - Pipe-Search: builds a database of configurations in advance, sorted by an estimate, and
 * tries them in that order. The estimate knows the weights of units on the fastest class, and one factor for
 * each other class. */
#include "sim/balance/methods.h"

#include <math.h>
#include <stdlib.h>

enum { KEPT = 2000, DRAWN = 20000 };

typedef struct entry {
    double estimate;
    hp_balance b;
} entry;

static int by_estimate(const void *x, const void *y) {
    const entry *a = x, *b = y;
    return a->estimate < b->estimate ? -1 : a->estimate > b->estimate;
}

/* Factor by which all units take longer on a class than on the first. */
static double factor_of(const hp_chain *c, int class) {
    double own = 0, first = 0;
    for (int u = 0; u < c->n_unit; u++) {
        own += c->seconds[class][u];
        first += c->seconds[0][u];
    }
    return first > 0 ? own / first : 1;
}

static double estimate(const hp_chain *c, const double *factor, const hp_balance *b) {
    double most = 0;
    for (int s = 0, u = 0; s < b->n_stage; s++) {
        double sum = 0;
        for (int end = u + b->units[s]; u < end; u++) sum += c->seconds[0][u];
        most = fmax(most, sum * factor[hp_chain_class(c, b->place[s])]);
    }
    return most;
}

/* Takes all of a small space, in order; from a large one, as many configurations as can be examined. */
static int fill(hp_balance_run *r, entry *list) {
    double factor[HP_BALANCE_CLASSES];
    for (int k = 0; k < r->chain->n_class; k++) factor[k] = factor_of(r->chain, k);
    for (int i = 0; i < DRAWN; i++) {
        balance_random(r, (uint64_t)i, &list[i].b);
        const int stages = 1 + (int)(list[i].b.n_stage * balance_draw(r, 4, (uint64_t)i));
        for (; list[i].b.n_stage > stages; list[i].b.n_stage--) /* fewer places are in use */
            list[i].b.units[list[i].b.n_stage - 2] += list[i].b.units[list[i].b.n_stage - 1];
        list[i].estimate = estimate(r->chain, factor, &list[i].b);
    }
    qsort(list, DRAWN, sizeof *list, by_estimate);
    return KEPT;
}

void balance_pipe_search(hp_balance_run *r) {
    entry *list = HP_NEW(r->arena, entry, DRAWN);
    const int n = fill(r, list);
    double seconds;
    for (int i = 0; i < n; i++)
        if (!hp_balance_try(r, &list[i].b, &seconds)) return;
}
