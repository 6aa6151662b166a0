/* balance_local.c - local searches: annealing, hill climbing, a random walk. */
#include "sim/balance/methods.h"

#include "base/status.h"

#include <gsl/gsl_rng.h>
#include <gsl/gsl_siman.h>

#include <math.h>

enum { DEFAULT_TRIES = 2000 };

static int64_t budget(const hp_balance_run *r) {
    return r->most_tries > 0 ? r->most_tries : DEFAULT_TRIES;
}

/* --- annealing --- */

/* Context passed through GSL, which handles only a pointer. */
typedef struct annealed {
    hp_balance_run *r;
    hp_balance b;
    double worst; /* value of configurations that do not fit */
} annealed;

static double energy(void *state) {
    annealed *a = state;
    double seconds;
    hp_balance_try(a->r, &a->b, &seconds);
    return isinf(seconds) ? a->worst : seconds;
}

static void step(const gsl_rng *rng, void *state, double size) {
    (void)size;
    annealed *a = state;
    hp_balance next;
    const int n = balance_neighbours(a->r->chain, &a->b);
    for (int tried = 0; n > 0 && tried < 100; tried++)
        if (balance_neighbour(a->r->chain, &a->b, (int)gsl_rng_uniform_int(rng, (unsigned long)n), &next)) {
            a->b = next;
            return;
        }
}

static double all_on_slowest(const hp_chain *c) {
    double most = 0;
    for (int k = 0; k < c->n_class; k++) {
        double sum = 0;
        for (int u = 0; u < c->n_unit; u++) sum += c->seconds[k][u];
        most = fmax(most, sum);
    }
    return most;
}

static double unlike(void *x, void *y) {
    return x != y;
}

void balance_annealing(hp_balance_run *r) {
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    HP_ASSERT(rng);
    gsl_rng_set(rng, (unsigned long)r->seed);
    annealed a = {.r = r, .worst = 2 * all_on_slowest(r->chain)};
    balance_random(r, 0, &a.b);
    const double start = a.worst / hp_chain_places(r->chain), end = 1e-3 * start;
    /* reaches the final temperature within the budget, with one try per temperature */
    const double cooling = pow(start / end, 1.0 / (double)budget(r));
    gsl_siman_params_t how = {.n_tries = 1,
                              .iters_fixed_T = 1,
                              .step_size = 1,
                              .k = 1,
                              .t_initial = 0.1 * start,
                              .mu_t = cooling,
                              .t_min = 0.1 * end};
    gsl_siman_solve(rng, &a, energy, step, unlike, NULL, NULL, NULL, NULL, sizeof a, how);
    gsl_rng_free(rng);
}

/* --- climbing --- */

/* Moves to the best neighbour while one is better; returns false if enough was tried. */
static bool climb(hp_balance_run *r, hp_balance *b, double *seconds) {
    for (bool better = true; better;) {
        hp_balance next, best = *b;
        better = false;
        for (int i = 0; i < balance_neighbours(r->chain, b); i++) {
            double taken;
            if (!balance_neighbour(r->chain, b, i, &next)) continue;
            if (!hp_balance_try(r, &next, &taken)) return false;
            if (taken >= *seconds) continue;
            *seconds = taken;
            best = next;
            better = true;
        }
        *b = best;
    }
    return true;
}

void balance_climb(hp_balance_run *r) {
    hp_balance b;
    double seconds;
    for (uint64_t start = 0; r->tries < budget(r); start++) {
        balance_random(r, start, &b);
        if (!hp_balance_try(r, &b, &seconds) || !climb(r, &b, &seconds)) return;
    }
}

void balance_walk(hp_balance_run *r) {
    hp_balance b, next;
    double seconds;
    balance_random(r, 0, &b);
    hp_balance_try(r, &b, &seconds);
    for (uint64_t k = 0; r->tries < budget(r) && k < 100 * (uint64_t)budget(r); k++) {
        const int n = balance_neighbours(r->chain, &b);
        if (n == 0) return;
        if (!balance_neighbour(r->chain, &b, (int)(n * balance_draw(r, 3, k)), &next)) continue;
        b = next;
        if (!hp_balance_try(r, &b, &seconds)) return;
    }
}
