/* share.c - progressive filling (Bertsekas & Gallager, Data Networks, 6.5.2): raise all unfrozen rates by the
 * same step, freeze those that reach their cap or run through a resource that became full, repeat. */
#include "sim/share.h"

#include <stdbool.h>

enum { GROWING = -1, FROZEN_NOW = -2 }; /* in place of a rate */

/* Demand of all activities, and what a resource has. */
static void start(const hp_share_problem *p, double *growing, double *left) {
    for (int r = 0; r < p->n_resource; r++) {
        growing[r] = 0;
        left[r] = p->capacity[r];
    }
    for (int32_t u = p->use_first[0]; u < p->use_first[p->n_activity]; u++)
        growing[p->use[u].resource] += p->use[u].demand;
}

/* An activity stays at this rate: its resources have less left, for fewer. */
static void settle(const hp_share_problem *p, int a, double rate, double *growing, double *left) {
    for (int32_t u = p->use_first[a]; u < p->use_first[a + 1]; u++) {
        const int32_t r = p->use[u].resource;
        growing[r] -= p->use[u].demand;
        left[r] -= p->use[u].demand * rate;
        if (growing[r] < 1e-12 * p->capacity[r]) growing[r] = 0; /* rounding of the sums: nobody is left */
    }
}

static bool is_full(const hp_share_problem *p, int a, const double *growing, const double *left, double level) {
    for (int32_t u = p->use_first[a]; u < p->use_first[a + 1]; u++) {
        const int32_t r = p->use[u].resource;
        if (left[r] <= growing[r] * level * (1 + 1e-12)) return true; /* rounding of the division below */
    }
    return false;
}

/* Freezes, at `level`, the growing activities that use a resource which is full at that level. */
static int freeze(const hp_share_problem *p, double *growing, double *left, double level, double *rate) {
    int n = 0;
    for (int a = 0; a < p->n_activity; a++) {
        if (rate[a] != GROWING || !is_full(p, a, growing, left, level)) continue;
        rate[a] = FROZEN_NOW;
        n++;
    }
    for (int a = 0; a < p->n_activity && n > 0; a++) {
        if (rate[a] > FROZEN_NOW) continue;
        rate[a] = level;
        settle(p, a, level, growing, left);
    }
    return n;
}

void hp_share_solve(const hp_share_problem *p, double *work, double *rate) {
    double *growing = work, *left = work + p->n_resource;
    for (int a = 0; a < p->n_activity; a++) rate[a] = GROWING;
    start(p, growing, left);
    for (;;) {
        double level = 1; /* the next level at which a resource is full */
        for (int r = 0; r < p->n_resource; r++) {
            if (growing[r] > 0 && left[r] < growing[r] * level)
                level = left[r] > 0 ? left[r] / growing[r] : 0;
        }
        if (level >= 1 || freeze(p, growing, left, level, rate) == 0) break;
    }
    for (int a = 0; a < p->n_activity; a++) {
        if (rate[a] < 0) rate[a] = 1;
    }
}
