/* comm_library.c - what a library's own all-reduce takes at best, where it was not measured: the cheapest of
 * the algorithms of the literature, because every library chooses by size (Thakur et al. 2005). */
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

static double cheapest(const hp_alpha_beta *l, int p, double bytes) {
    if (p <= 1) return 0;
    double best = hp_library_rabenseifner(l, p, bytes);
    for (int a = HP_ALGORITHM_LIBRARY + 1; a < HP_ALGORITHMS; a++)
        best = fmin(best, hp_collective_seconds(hp_collectives[a], l, p, bytes));
    return best;
}

double hp_library_hierarchical(const hp_two_lines *l, int ranks, int per_node, int nics, double bytes) {
    const int nodes = (ranks + per_node - 1) / per_node;
    const hp_collective_ops *ring = hp_collectives[HP_ALGORITHM_RING];
    const double inside = per_node > 1 ? hp_collective_seconds(ring, &l->intra, per_node, bytes) : 0;
    if (nodes == 1) return inside;
    hp_alpha_beta shared = l->inter;
    if (nics > 0 && per_node > nics) shared.beta_s_per_byte *= (double)per_node / nics;
    return inside + cheapest(&shared, nodes, bytes / per_node);
}

double hp_library_seconds(const hp_two_lines *l, int ranks, int per_node, int nics, double bytes) {
    if (per_node >= ranks) return cheapest(&l->intra, ranks, bytes);
    hp_alpha_beta shared = l->inter; /* flat over all ranks: those of a node share its NICs */
    if (nics > 0 && per_node > nics) shared.beta_s_per_byte *= (double)per_node / nics;
    if (per_node > 1) shared.beta_s_per_byte = fmax(shared.beta_s_per_byte, l->intra.beta_s_per_byte);
    return fmin(cheapest(&shared, ranks, bytes), hp_library_hierarchical(l, ranks, per_node, nics, bytes));
}
