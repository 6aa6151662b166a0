/* comm_allreduce.c - all-reduce: the measured line of (link, ranks, ranks per node), else the cheapest of the
 * formulas, because every library chooses by size (Thakur et al. 2005). */
#include "costmodels/line.h"
#include "costmodels/models.h"

#include <math.h>
#include <stdio.h>

double hp_allreduce_ring(const hp_alpha_beta *l, int p, double bytes) {
    const double share = (p - 1) / (double)p * bytes;
    return 2 * (p - 1) * l->alpha_s + 2 * share * l->beta_s_per_byte + share * l->gamma_s_per_byte;
}

static double fold_in_and_out(const hp_alpha_beta *l, int p, double bytes) {
    if ((p & (p - 1)) == 0) return 0;
    return 2 * (l->alpha_s + bytes * l->beta_s_per_byte) + bytes * l->gamma_s_per_byte;
}

double hp_allreduce_doubling(const hp_alpha_beta *l, int p, double bytes) {
    const double rounds = floor(log2(p));
    return rounds * (l->alpha_s + bytes * (l->beta_s_per_byte + l->gamma_s_per_byte)) +
           fold_in_and_out(l, p, bytes);
}

double hp_allreduce_rabenseifner(const hp_alpha_beta *l, int p, double bytes) {
    const double q = exp2(floor(log2(p))), share = (q - 1) / q * bytes;
    return 2 * floor(log2(p)) * l->alpha_s + 2 * share * l->beta_s_per_byte + share * l->gamma_s_per_byte +
           fold_in_and_out(l, p, bytes);
}

static double cheapest(const hp_alpha_beta *l, int p, double bytes) {
    if (p <= 1) return 0;
    return fmin(hp_allreduce_ring(l, p, bytes),
                fmin(hp_allreduce_doubling(l, p, bytes), hp_allreduce_rabenseifner(l, p, bytes)));
}

double hp_allreduce_hierarchical(const hp_alpha_beta *intra, const hp_alpha_beta *inter, int ranks,
                                 int per_node, int nics, double bytes) {
    const int nodes = (ranks + per_node - 1) / per_node;
    const double inside = per_node > 1 ? hp_allreduce_ring(intra, per_node, bytes) : 0;
    if (nodes == 1) return inside;
    hp_alpha_beta shared = *inter;
    if (nics > 0 && per_node > nics) shared.beta_s_per_byte *= (double)per_node / nics;
    return inside + cheapest(&shared, nodes, bytes / per_node);
}

/* The line of messages around `bytes`, as a latency and a rate. */
static hp_alpha_beta alpha_beta(const hp_cost_table *t, const hp_machine *m, bool same_node, double bytes) {
    const double small = hp_cost_p2p(t, m, same_node, 0).seconds;
    const double whole = hp_cost_p2p(t, m, same_node, bytes).seconds;
    /* adding streams two operands in and one out */
    return (hp_alpha_beta){small, bytes > 0 ? fmax(0, whole - small) / bytes : 0, 3 / m->device.bytes_per_s};
}

static const hp_row *measured_row(const hp_cost_table *t, const hp_machine *m, int ranks, int per_node) {
    char key[40];
    snprintf(key, sizeof key, "r%d n%d", ranks, per_node);
    return hp_rows_find(t, HP_ROW_ALLREDUCE, per_node >= ranks ? m->intra.name : m->inter.name, key);
}

/* The formulas, from messages alone. */
static double modelled(const hp_cost_table *t, const hp_machine *m, int ranks, int per_node, double bytes) {
    const hp_alpha_beta intra = alpha_beta(t, m, true, bytes), inter = alpha_beta(t, m, false, bytes);
    if (per_node >= ranks) return cheapest(&intra, ranks, bytes);
    hp_alpha_beta shared = inter; /* flat over all ranks: those of a node share its NICs */
    if (m->nics_per_node > 0 && per_node > m->nics_per_node)
        shared.beta_s_per_byte *= (double)per_node / m->nics_per_node;
    return fmin(cheapest(&shared, ranks, bytes),
                hp_allreduce_hierarchical(&intra, &inter, ranks, per_node, m->nics_per_node, bytes));
}

/* Beyond the measured sizes the formulas say how much more it takes: few sizes were measured, and far apart.
 */
static double from_row(const hp_cost_table *t, const hp_machine *m, const hp_row *row, int ranks,
                       int per_node, double bytes) {
    const double last = row->x[row->n - 1];
    if (bytes <= last) return hp_line_at(row->x, row->y, row->n, bytes);
    const double more = modelled(t, m, ranks, per_node, bytes) - modelled(t, m, ranks, per_node, last);
    return row->y[row->n - 1] + fmax(0, more);
}

hp_cost hp_cost_allreduce(const hp_cost_table *t, const hp_machine *m, int ranks, int per_node,
                          double bytes) {
    if (ranks <= 1) return (hp_cost){0, 0, 0, HP_SOURCE_MEASURED};
    const hp_row *row = measured_row(t, m, ranks, per_node);
    if (row) return hp_cost_of_row(row, from_row(t, m, row, ranks, per_node, bytes));
    const double seconds = modelled(t, m, ranks, per_node, bytes);
    const hp_cost message = hp_cost_p2p(t, m, per_node >= ranks, bytes);
    const double spread = message.seconds > 0 ? (message.high - message.seconds) / message.seconds : 0;
    return (hp_cost){seconds, seconds * (1 - spread), seconds * (1 + spread),
                     message.source == HP_SOURCE_MEASURED ? HP_SOURCE_GUESS : message.source};
}
