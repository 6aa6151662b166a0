/* share.c - progressive filling (Bertsekas & Gallager, Data Networks, 6.5.2): raise all unfrozen rates by the
 * same step, freeze those that reach their cap or run through a resource that became full, repeat. */
#include "sim/share.h"

/* Demand of the growing activities and capacity left, per resource. */
static void sum_demand(const hp_share_problem *p, const double *rate, double *growing, double *left) {
    for (int r = 0; r < p->n_resource; r++) {
        growing[r] = 0;
        left[r] = p->capacity[r];
    }
    for (int a = 0; a < p->n_activity; a++) {
        for (int32_t u = p->use_first[a]; u < p->use_first[a + 1]; u++) {
            if (rate[a] < 0)
                growing[p->use[u].resource] += p->use[u].demand;
            else
                left[p->use[u].resource] -= p->use[u].demand * rate[a];
        }
    }
}

/* Freezes, at `level`, the growing activities that use a resource which is full at that level. */
static int freeze(const hp_share_problem *p, const double *growing, const double *left, double level,
                  double *rate) {
    int n = 0;
    for (int a = 0; a < p->n_activity; a++) {
        if (rate[a] >= 0) continue;
        for (int32_t u = p->use_first[a]; u < p->use_first[a + 1]; u++) {
            const int32_t r = p->use[u].resource;
            if (left[r] > growing[r] * level * (1 + 1e-12)) continue; /* rounding of the division below */
            rate[a] = level;
            n++;
            break;
        }
    }
    return n;
}

void hp_share_solve(const hp_share_problem *p, double *work, double *rate) {
    double *growing = work, *left = work + p->n_resource;
    for (int a = 0; a < p->n_activity; a++) rate[a] = -1; /* growing */
    for (;;) {
        sum_demand(p, rate, growing, left);
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
