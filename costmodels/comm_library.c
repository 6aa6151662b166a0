/* comm_library.c - what a library's own collective takes at best, where it was not measured: the cheapest of the
 * algorithms of the literature, because every library chooses by size (Thakur et al. 2005). Of all-reduces, those of
 * that paper, flat and in two levels; of the others, all that hplan knows. */
#include "costmodels/models.h"

#include <math.h>

static double fold_in_and_out(const hp_alpha_beta *l, int p, double bytes) {
    if ((p & (p - 1)) == 0) return 0;
    return 2 * (l->alpha_s + bytes * l->beta_s_per_byte) + bytes * l->gamma_s_per_byte;
}

double hp_library_rabenseifner(const hp_alpha_beta *l, int p, double bytes) {
    const double q = exp2(floor(log2(p))), share = (q - 1) / q * bytes;
    return 2 * floor(log2(p)) * l->alpha_s + 2 * share * l->beta_s_per_byte + share * l->gamma_s_per_byte +
           fold_in_and_out(l, p, bytes);
}

/* --- all-reduce --- */

/* All members alike. */
static double flat_seconds(hp_algorithm a, const hp_alpha_beta *l, int p, double bytes) {
    const hp_collective_case c = {.what = HP_COLLECTIVE_ALLREDUCE, .size = p, .per_node = p};
    return hp_collective_seconds(a, &c, &(hp_two_lines){*l, *l}, 0, bytes);
}

static double cheapest(const hp_alpha_beta *l, int p, double bytes) {
    static const hp_algorithm flat[] = {HP_ALGORITHM_DOUBLING, HP_ALGORITHM_RING};
    if (p <= 1) return 0;
    double best = hp_library_rabenseifner(l, p, bytes);
    for (size_t i = 0; i < sizeof flat / sizeof *flat; i++)
        best = fmin(best, flat_seconds(flat[i], l, p, bytes));
    return best;
}

double hp_library_hierarchical(const hp_two_lines *l, int ranks, int per_node, double nics, double bytes) {
    const int nodes = (ranks + per_node - 1) / per_node;
    const double inside = per_node > 1 ? flat_seconds(HP_ALGORITHM_RING, &l->intra, per_node, bytes) : 0;
    if (nodes == 1) return inside;
    hp_alpha_beta shared = l->inter;
    if (nics > 0 && per_node > nics) shared.beta_s_per_byte *= per_node / nics;
    return inside + cheapest(&shared, nodes, bytes / per_node);
}

static double allreduce_seconds(const hp_collective_case *c, const hp_two_lines *l, double nics,
                                double bytes) {
    const int ranks = c->size, per_node = c->per_node;
    if (per_node >= ranks) return cheapest(&l->intra, ranks, bytes);
    hp_alpha_beta shared = l->inter; /* flat over all ranks: those of a node share its NICs */
    if (nics > 0 && per_node > nics) shared.beta_s_per_byte *= per_node / nics;
    if (per_node > 1) shared.beta_s_per_byte = fmax(shared.beta_s_per_byte, l->intra.beta_s_per_byte);
    return fmin(cheapest(&shared, ranks, bytes), hp_library_hierarchical(l, ranks, per_node, nics, bytes));
}

/* --- all --- */

double hp_library_seconds(const hp_collective_case *c, const hp_two_lines *l, double nics, double bytes) {
    if (c->what == HP_COLLECTIVE_ALLREDUCE) return allreduce_seconds(c, l, nics, bytes);
    double best = INFINITY;
    for (int a = HP_ALGORITHM_LIBRARY + 1; a < HP_ALGORITHMS; a++)
        if (hp_algorithm_does((hp_algorithm)a, c, true))
            best = fmin(best, hp_collective_seconds((hp_algorithm)a, c, l, nics, bytes));
    return best;
}
