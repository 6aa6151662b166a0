/* share.c - progressive filling (Bertsekas & Gallager, Data Networks, 6.5.2): raises all unfrozen rates by
 * the same step, freezes those that reach their cap or use a resource that became full, and repeats. */
#include "sim/engine/share.h"

#include <stdbool.h>
#include <string.h>

enum { GROWING = -1 }; /* marker instead of a rate */

typedef struct solver {
    const hp_share_problem *p;
    double *growing, *left;     /* per resource: demand of growing activities; capacity left by the others */
    int32_t *user_first, *user; /* CSR: activities of a resource */
    int32_t *open, n_open;      /* resources used by a growing activity */
    double *rate;
} solver;

static void start(solver *s) {
    const hp_share_problem *p = s->p;
    const int32_t n_use = p->use_first[p->n_activity];
    memset(s->user_first, 0, sizeof *s->user_first * ((size_t)p->n_resource + 1));
    for (int r = 0; r < p->n_resource; r++) {
        s->growing[r] = 0;
        s->left[r] = p->capacity[r];
        s->open[r] = r;
    }
    for (int32_t u = 0; u < n_use; u++) {
        s->growing[p->use[u].resource] += p->use[u].demand;
        s->user_first[p->use[u].resource]++;
    }
    for (int r = 0; r < p->n_resource; r++)
        s->user_first[r + 1] += s->user_first[r]; /* ends; become firsts below */
    for (int a = p->n_activity - 1; a >= 0; a--) {
        s->rate[a] = GROWING;
        for (int32_t u = p->use_first[a]; u < p->use_first[a + 1]; u++)
            s->user[--s->user_first[p->use[u].resource]] = a;
    }
    s->n_open = p->n_resource;
}

/* Freezes an activity at this rate: its resources have less left, for fewer users. */
static void freeze(const solver *s, int a, double rate) {
    const hp_share_problem *p = s->p;
    s->rate[a] = rate;
    for (int32_t u = p->use_first[a]; u < p->use_first[a + 1]; u++) {
        const int32_t r = p->use[u].resource;
        s->growing[r] -= p->use[u].demand;
        s->left[r] -= p->use[u].demand * rate;
        if (s->growing[r] < 1e-12 * p->capacity[r])
            s->growing[r] = 0; /* rounding error of the sums: no activity is left */
    }
}

/* The next level at which a resource is full; drops resources on which no activity grows. */
static double next_level(solver *s) {
    double level = 1;
    int32_t kept = 0;
    for (int32_t i = 0; i < s->n_open; i++) {
        const int32_t r = s->open[i];
        if (s->growing[r] <= 0) continue;
        s->open[kept++] = r;
        if (s->left[r] < s->growing[r] * level) level = s->left[r] > 0 ? s->left[r] / s->growing[r] : 0;
    }
    s->n_open = kept;
    return level;
}

static void fill_up(const solver *s, double level) {
    for (int32_t i = 0; i < s->n_open; i++) {
        const int32_t r = s->open[i];
        if (s->growing[r] <= 0 || s->left[r] > s->growing[r] * level * (1 + 1e-12))
            continue; /* rounding error of the division */
        for (int32_t k = s->user_first[r]; k < s->user_first[r + 1]; k++)
            if (s->rate[s->user[k]] < 0) freeze(s, s->user[k], level);
    }
}

void hp_share_solve(const hp_share_problem *p, double *work, int32_t *index, double *rate) {
    solver s = {.p = p, .growing = work, .left = work + p->n_resource, .rate = rate};
    s.user_first = index;
    s.open = s.user_first + p->n_resource + 1;
    s.user = s.open + p->n_resource;
    start(&s);
    for (double level; (level = next_level(&s)) < 1;) fill_up(&s, level);
    for (int a = 0; a < p->n_activity; a++) {
        if (rate[a] < 0) rate[a] = 1;
    }
}
