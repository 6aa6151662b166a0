/* shisha.c - Shisha: derives a seed from the units' weights alone. Then it moves one unit at a time from the
 * slowest stage to another, guided by measured times, until `alpha` tries brought no gain. It continues from
 * its current state even after a loss, and keeps the best. Weights are the units' times on the fastest class:
 * static estimates, no profile of the others. */
#include "sim/balance/methods.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALPHA = 10 };

typedef enum ranking { BY_WEIGHT, BY_LENGTH } ranking;
typedef enum target { NEAREST_FAST, LIGHTEST_FAST, NEAREST_LIGHTEST } target;

/* --- the seed --- */

typedef struct seed_stage {
    double weight;
    int32_t units, at; /* at: its position in the chain */
} seed_stage;

static void merge(seed_stage *s, int *n, int into, int from) {
    s[into].weight += s[from].weight;
    s[into].units += s[from].units;
    memmove(&s[from], &s[from + 1], sizeof *s * (size_t)(*n - from - 1));
    --*n;
}

/* Merges the lightest stage with its lighter neighbour while there are more stages than places. */
static int merge_lightest(seed_stage *s, int n, int places) {
    while (n > places) {
        int lightest = 0;
        for (int i = 1; i < n; i++)
            if (s[i].weight < s[lightest].weight) lightest = i;
        const bool left =
            lightest == n - 1 || (lightest > 0 && s[lightest - 1].weight <= s[lightest + 1].weight);
        merge(s, &n, left ? lightest - 1 : lightest, left ? lightest : lightest + 1);
    }
    return n;
}

static int by_weight(const void *x, const void *y) {
    const seed_stage *a = x, *b = y;
    return a->weight > b->weight ? -1 : a->weight < b->weight ? 1 : a->at - b->at;
}

static int by_length(const void *x, const void *y) {
    const seed_stage *a = x, *b = y;
    return a->units != b->units ? b->units - a->units : a->at - b->at;
}

/* Places are numbered from the fastest class on. */
static void plant(const hp_balance_run *r, ranking how, hp_balance *b) {
    const hp_chain *c = r->chain;
    seed_stage s[HP_BALANCE_UNITS] = {0};
    for (int u = 0; u < c->n_unit; u++) s[u] = (seed_stage){c->seconds[0][u], 1, 0};
    b->n_stage = merge_lightest(s, c->n_unit, hp_chain_places(c));
    for (int i = 0; i < b->n_stage; i++) {
        s[i].at = i;
        b->units[i] = s[i].units;
    }
    qsort(s, (size_t)b->n_stage, sizeof *s, how == BY_WEIGHT ? by_weight : by_length);
    for (int rank = 0; rank < b->n_stage; rank++) b->place[s[rank].at] = rank;
}

/* --- balancing --- */

static double taken_by(const hp_chain *c, const hp_balance *b, int stage) {
    double sum = 0;
    int u = 0;
    for (int s = 0; s < stage; s++) u += b->units[s];
    for (int end = u + b->units[stage]; u < end; u++)
        sum += c->seconds[hp_chain_class(c, b->place[stage])][u];
    return sum;
}

/* Is the stage on a fast place? These are in the fastest class in use; if the slowest stage is the only one
 * there, all places count. */
static bool is_fast(const hp_chain *c, const hp_balance *b, int stage, int slowest) {
    int fastest = c->n_class, there = 0;
    for (int s = 0; s < b->n_stage; s++) {
        const int class = hp_chain_class(c, b->place[s]);
        if (class < fastest) there = 0;
        if (class < fastest) fastest = class;
        if (class == fastest) there += s != slowest;
    }
    return there == 0 || hp_chain_class(c, b->place[stage]) == fastest;
}

/* The stage that receives a unit; -1: none. */
static int aim(const hp_chain *c, const hp_balance *b, target how, int slowest) {
    int best = -1;
    double least = INFINITY;
    for (int s = 0; s < b->n_stage; s++) {
        if (s == slowest || (how != NEAREST_LIGHTEST && !is_fast(c, b, s, slowest))) continue;
        const double far = abs(s - slowest), light = taken_by(c, b, s);
        const double cost = how == NEAREST_FAST ? far : how == LIGHTEST_FAST ? light : light * far;
        if (cost >= least) continue;
        least = cost;
        best = s;
    }
    return best;
}

static void shisha(hp_balance_run *r, ranking rank, target how) {
    const int alpha = r->alpha > 0 ? r->alpha : ALPHA;
    hp_balance b;
    double seconds;
    plant(r, rank, &b);
    if (!hp_balance_try(r, &b, &seconds)) return;
    for (int without = 0; without < alpha;) {
        const double before = r->best_s;
        int slowest = 0;
        hp_balance_seconds(r->chain, &b, &slowest);
        const int to = aim(r->chain, &b, how, slowest);
        if (to < 0 || !balance_shift(&b, slowest, to) || !hp_balance_try(r, &b, &seconds)) return;
        without = r->best_s < before ? 0 : without + 1;
    }
}

void balance_shisha_h1(hp_balance_run *r) {
    shisha(r, BY_WEIGHT, NEAREST_FAST);
}
void balance_shisha_h2(hp_balance_run *r) {
    shisha(r, BY_WEIGHT, LIGHTEST_FAST);
}
void balance_shisha_h3(hp_balance_run *r) {
    shisha(r, BY_WEIGHT, NEAREST_LIGHTEST);
}
void balance_shisha_h4(hp_balance_run *r) {
    shisha(r, BY_LENGTH, NEAREST_FAST);
}
void balance_shisha_h5(hp_balance_run *r) {
    shisha(r, BY_LENGTH, LIGHTEST_FAST);
}
void balance_shisha_h6(hp_balance_run *r) {
    shisha(r, BY_LENGTH, NEAREST_LIGHTEST);
}
