/* comm_library.c - the best time of a library's own collective that was not measured: the cheapest of the
 * algorithms in the literature, because every library chooses by size (Thakur et al. 2005). All-reduces use
 * the algorithms of that paper, flat and in two levels; the others use all that hplan knows. */
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
    return hp_collective_seconds(a, &c, &(hp_two_lines){*l, *l}, &(hp_uplinks){0}, bytes);
}

/* Lines of a ring's steps, and of other steps, whose partners are further away. */
typedef struct distances {
    hp_alpha_beta ring, others;
} distances;

static double cheapest(const distances *l, int p, double bytes) {
    if (p <= 1) return 0;
    return fmin(fmin(hp_library_rabenseifner(&l->others, p, bytes),
                     flat_seconds(HP_ALGORITHM_DOUBLING, &l->others, p, bytes)),
                flat_seconds(HP_ALGORITHM_RING, &l->ring, p, bytes));
}

/* Each of a node's `per_node` members gets its share of the NICs and of the leaf switch's uplinks. A ring
 * goes from node to node, so only one node's members send beyond a leaf switch. */
static distances shared_by(const hp_alpha_beta *l, const hp_uplinks *up, int per_node) {
    const double nics = up->nics > 0 ? fmax(1, per_node / up->nics) : 1,
                 leaf = up->leaf_links > 0 ? per_node / up->leaf_links : 0;
    distances d = {*l, *l};
    d.ring.beta_s_per_byte *= fmax(nics, leaf);
    d.others.beta_s_per_byte *= fmax(nics, leaf * up->leaf_nodes);
    return d;
}

double hp_library_hierarchical(const hp_two_lines *l, int ranks, int per_node, const hp_uplinks *up,
                               double bytes) {
    const int nodes = (ranks + per_node - 1) / per_node;
    const double inside = per_node > 1 ? flat_seconds(HP_ALGORITHM_RING, &l->intra, per_node, bytes) : 0;
    if (nodes == 1) return inside;
    const distances d = shared_by(&l->inter, up, per_node);
    return inside + cheapest(&d, nodes, bytes / per_node);
}

static double allreduce_seconds(const hp_collective_case *c, const hp_two_lines *l, const hp_uplinks *up,
                                double bytes) {
    const int ranks = c->size, per_node = c->per_node;
    const distances inside = {l->intra, l->intra};
    if (per_node >= ranks) return cheapest(&inside, ranks, bytes);
    distances d = shared_by(&l->inter, up, per_node); /* flat over all ranks */
    if (per_node > 1) {
        d.ring.beta_s_per_byte = fmax(d.ring.beta_s_per_byte, l->intra.beta_s_per_byte);
        d.others.beta_s_per_byte = fmax(d.others.beta_s_per_byte, l->intra.beta_s_per_byte);
    }
    return fmin(cheapest(&d, ranks, bytes), hp_library_hierarchical(l, ranks, per_node, up, bytes));
}

/* --- all --- */

double hp_library_seconds(const hp_collective_case *c, const hp_two_lines *l, const hp_uplinks *up,
                          double bytes) {
    if (c->what == HP_COLLECTIVE_ALLREDUCE) return allreduce_seconds(c, l, up, bytes);
    double best = INFINITY;
    for (int a = HP_ALGORITHM_LIBRARY + 1; a < HP_ALGORITHMS; a++)
        if (hp_algorithm_does((hp_algorithm)a, c, true))
            best = fmin(best, hp_collective_seconds((hp_algorithm)a, c, l, up, bytes));
    return best;
}
