/* comm_allreduce.c - all-reduce: the measured line of (link, ranks, ranks per node, back end), else the
 * cheapest of the formulas, because every library chooses by size (Thakur et al. 2005), with what the back
 * end adds once: a launch, and the whole buffer to the host and back (Open MPI's coll/accelerator). */
#include "costmodels/line.h"
#include "costmodels/models.h"

#include <math.h>
#include <stdio.h>

/* A core of a server of the 2020s (machine/local.c), which adds what came to the host. */
#define HOST_CORE_BYTES_PER_S 10e9

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

/* How a back end adds up over the ranks of a node, or over nodes: what the whole operation takes before and
 * after, and its messages around `bytes` as a latency and a rate. */
typedef struct carried {
    double once_s, copies_s_per_byte;
    hp_alpha_beta line;
} carried;

/* Through the host's memory. */
static carried by_host(const hp_row *path, double copies) {
    const hp_alpha_beta line = {path->y[HP_PATH_HOP], 1 / path->y[HP_PATH_HOST], 3 / HOST_CORE_BYTES_PER_S};
    return (carried){path->y[HP_PATH_LATENCY], copies, line};
}

/* The latency of a measured message holds the launch; an all-reduce is launched once. */
static carried carried_by(const hp_cost_table *t, const hp_machine *m, hp_wire by, bool same_node,
                          double bytes) {
    const hp_row *path = hp_comm_path(t, m, by, same_node, false);
    const double once = path ? path->y[HP_PATH_LATENCY] : 0,
                 copies = path && path->y[HP_PATH_COPIES] > 0 ? 1 / path->y[HP_PATH_COPIES] : 0;
    if (path && same_node && path->y[HP_PATH_HOST] > 0) return by_host(path, copies);
    /* copies happen once, around it: its messages are those of the link */
    const hp_wire wire = copies > 0 ? HP_WIRE_ANY : by;
    const double launch = copies > 0 ? 0 : once;
    const double small = hp_cost_p2p(t, m, wire, same_node, 0).seconds,
                 whole = hp_cost_p2p(t, m, wire, same_node, bytes).seconds;
    /* adding streams two operands in and one out */
    const double gamma = 3 / (copies > 0 ? HOST_CORE_BYTES_PER_S : m->device.bytes_per_s);
    const double beta = bytes > 0 ? fmax(0, whole - small) / bytes : 0;
    return (carried){once, copies, {fmax(0, small - launch), beta, gamma}};
}

static const hp_row *measured_row(const hp_cost_table *t, const hp_machine *m, hp_wire by, int ranks,
                                  int per_node) {
    /* nobody's in particular: else what was published of NCCL */
    const char *const names[] = {"", " mpi", " nccl"};
    const char *link = per_node >= ranks ? m->intra.name : m->inter.name;
    char key[40];
    snprintf(key, sizeof key, "r%d n%d%s", ranks, per_node, names[by]);
    const hp_row *row = hp_rows_find(t, HP_ROW_ALLREDUCE, link, key);
    return row || by != HP_WIRE_ANY ? row : measured_row(t, m, HP_CARRIER_NCCL, ranks, per_node);
}

/* The formulas, from messages alone. */
static double modelled(const hp_cost_table *t, const hp_machine *m, hp_wire by, int ranks, int per_node,
                       double bytes) {
    const carried intra = carried_by(t, m, by, true, bytes), inter = carried_by(t, m, by, false, bytes);
    if (per_node >= ranks)
        return intra.once_s + bytes * intra.copies_s_per_byte + cheapest(&intra.line, ranks, bytes);
    hp_alpha_beta shared = inter.line; /* flat over all ranks: those of a node share its NICs */
    if (m->nics_per_node > 0 && per_node > m->nics_per_node)
        shared.beta_s_per_byte *= (double)per_node / m->nics_per_node;
    if (per_node > 1) shared.beta_s_per_byte = fmax(shared.beta_s_per_byte, intra.line.beta_s_per_byte);
    const double levels =
        hp_allreduce_hierarchical(&intra.line, &inter.line, ranks, per_node, m->nics_per_node, bytes);
    return inter.once_s + bytes * inter.copies_s_per_byte + fmin(cheapest(&shared, ranks, bytes), levels);
}

/* Beyond the measured sizes the formulas say how much more it takes: few sizes were measured, and far apart.
 */
static double from_row(const hp_cost_table *t, const hp_machine *m, hp_wire by, const hp_row *row, int ranks,
                       int per_node, double bytes) {
    const double last = row->x[row->n - 1];
    if (bytes <= last) return hp_line_at(row->x, row->y, row->n, bytes);
    const double more =
        modelled(t, m, by, ranks, per_node, bytes) - modelled(t, m, by, ranks, per_node, last);
    return row->y[row->n - 1] + fmax(0, more);
}

hp_cost hp_cost_allreduce(const hp_cost_table *t, const hp_machine *m, hp_wire by, int ranks, int per_node,
                          double bytes) {
    if (ranks <= 1) return (hp_cost){0, 0, 0, HP_SOURCE_MEASURED};
    const hp_row *row = measured_row(t, m, by, ranks, per_node);
    if (row) return hp_cost_of_row(row, from_row(t, m, by, row, ranks, per_node, bytes));
    const double seconds = modelled(t, m, by, ranks, per_node, bytes);
    const hp_cost message = hp_cost_p2p(t, m, by, per_node >= ranks, bytes);
    const double spread = message.seconds > 0 ? (message.high - message.seconds) / message.seconds : 0;
    return (hp_cost){seconds, seconds * (1 - spread), seconds * (1 + spread),
                     message.source == HP_SOURCE_MEASURED ? HP_SOURCE_GUESS : message.source};
}
