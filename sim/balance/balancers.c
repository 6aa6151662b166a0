/* balancers.c - the balancers, by name. */
#include "sim/balance/methods.h"

#include <string.h>

const hp_balancer hp_balancers[] = {
    {"dp", "dynamic programme over units and places left of each class", true, false, balance_exact},
    {"exhaustive", "every configuration", true, false, balance_exhaustive},
    {"annealing", "simulated annealing of GSL, from a random start", false, true, balance_annealing},
    {"climb", "the best neighbour, again from a random start where there is none better", false, true,
     balance_climb},
    {"walk", "a random neighbour, always", false, true, balance_walk},
    {"pipe-search", "configurations in the order of an estimate made before", false, false,
     balance_pipe_search},
    {"shisha-h1", "heaviest stage on the fastest place; to the nearest fast place", false, true,
     balance_shisha_h1},
    {"shisha-h2", "heaviest stage on the fastest place; to the lightest fast place", false, true,
     balance_shisha_h2},
    {"shisha-h3", "heaviest stage on the fastest place; to the nearest of the lightest", false, true,
     balance_shisha_h3},
    {"shisha-h4", "longest stage on the fastest place; to the nearest fast place", false, true,
     balance_shisha_h4},
    {"shisha-h5", "longest stage on the fastest place; to the lightest fast place", false, true,
     balance_shisha_h5},
    {"shisha-h6", "longest stage on the fastest place; to the nearest of the lightest", false, true,
     balance_shisha_h6},
};
const int hp_n_balancers = sizeof hp_balancers / sizeof *hp_balancers;

const hp_balancer *hp_balancer_find(const char *name) {
    for (int i = 0; i < hp_n_balancers; i++)
        if (strcmp(hp_balancers[i].name, name) == 0) return &hp_balancers[i];
    return NULL;
}
