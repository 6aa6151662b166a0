/* comm_allreduce.c - all-reduce: the measured line of (link, ranks, ranks per node, back end), else the steps
 * of the algorithm that the plan chose (plan/collectives/collective.h), else, of a library, the best that any
 * algorithm could do (comm_library.c); with what the back end adds once: a launch, and the whole buffer to
 * the host and back (Open MPI's coll/accelerator). */
#include "costmodels/line.h"
#include "costmodels/models.h"
#include "costmodels/speed.h"

#include <math.h>
#include <stdio.h>

/* A core of a server of the 2020s (machine/local.c), which adds what came to the host. */
#define HOST_CORE_BYTES_PER_S 10e9

static double part_seconds(const hp_alpha_beta *l, const hp_collective_part *part, double bytes) {
    return part->rounds * l->alpha_s + part->sent * bytes * l->beta_s_per_byte;
}

double hp_collective_seconds(const hp_collective_ops *c, const hp_alpha_beta *l, int p, double bytes) {
    const hp_collective_load load = c->load(p, p);
    return part_seconds(l, &load.inside, bytes) + load.added * bytes * l->gamma_s_per_byte;
}

/* Of nodes' members that send at once, each has its share of the NICs; a step that crosses lasts at least as
 * long as its messages inside a node. */
double hp_collective_seconds_over(const hp_collective_ops *c, const hp_two_lines *l, int p, int per_node,
                                  int nics, double bytes) {
    if (per_node >= p) return hp_collective_seconds(c, &l->intra, p, bytes);
    const hp_collective_load load = c->load(p, per_node);
    hp_alpha_beta across = l->inter;
    if (nics > 0 && load.crossing > nics) across.beta_s_per_byte *= (double)load.crossing / nics;
    if (per_node > 1) across.beta_s_per_byte = fmax(across.beta_s_per_byte, l->intra.beta_s_per_byte);
    return part_seconds(&l->intra, &load.inside, bytes) + part_seconds(&across, &load.across, bytes) +
           load.added * bytes * l->inter.gamma_s_per_byte;
}

/* How a back end adds up over the ranks of a node, or over nodes: what the whole operation takes before and
 * after, and its messages around `bytes` as a latency and a rate. */
typedef struct transport {
    double once_s, copies_s_per_byte;
    hp_alpha_beta line;
} transport;

/* Through the host's memory. */
static transport transport_by_host(const hp_row *path, double copies) {
    const hp_alpha_beta line = {path->y[HP_PATH_HOP], 1 / path->y[HP_PATH_HOST], 3 / HOST_CORE_BYTES_PER_S};
    return (transport){path->y[HP_PATH_LATENCY], copies, line};
}

/* The latency of a measured message holds the launch; an all-reduce is launched once. */
static transport transport_of(const hp_cost_table *t, const hp_machine *m, hp_wire by, bool same_node,
                              double bytes) {
    const hp_row *path = hp_comm_path(t, m, by, same_node, false);
    const double once = path ? path->y[HP_PATH_LATENCY] : 0,
                 copies = path && path->y[HP_PATH_COPIES] > 0 ? 1 / path->y[HP_PATH_COPIES] : 0;
    if (path && same_node && path->y[HP_PATH_HOST] > 0) return transport_by_host(path, copies);
    /* copies happen once, around it: its messages are those of the link */
    const hp_wire wire = copies > 0 ? HP_WIRE_ANY : by;
    const double launch = copies > 0 ? 0 : once;
    const double small = hp_quiet_p2p(t, m, wire, same_node, 0).seconds,
                 whole = hp_quiet_p2p(t, m, wire, same_node, bytes).seconds;
    /* adding streams two operands in and one out */
    const double gamma = 3 / (copies > 0 ? HOST_CORE_BYTES_PER_S : m->device.bytes_per_s);
    const double beta = bytes > 0 ? fmax(0, whole - small) / bytes : 0;
    return (transport){once, copies, {fmax(0, small - launch), beta, gamma}};
}

static const hp_row *measured_row(const hp_cost_table *t, const hp_machine *m, const hp_allreduce_case *c) {
    static const char *const names[] = {"", " mpi", " nccl"};
    const char *link = c->per_node >= c->ranks ? m->intra.name : m->inter.name;
    char key[40];
    snprintf(key, sizeof key, "r%d n%d%s", c->ranks, c->per_node, names[c->by]);
    const hp_row *row = hp_rows_find(t, HP_ROW_ALLREDUCE, link, key);
    if (row || c->by != HP_WIRE_ANY) return row;
    hp_allreduce_case published = *c; /* of no back end in particular: what was published of NCCL */
    published.by = HP_WIRE_NCCL;
    return measured_row(t, m, &published);
}

/* A back end in particular runs the plan's algorithm, and so do processors, which have messages alone; of
 * devices whose back end is left open, and of NCCL, how a library does it is its own affair. */
static hp_algorithm algorithm_of(const hp_machine *m, const hp_allreduce_case *c) {
    const bool open = c->by == HP_WIRE_ANY && !m->device.is_cpu;
    return open || c->by == HP_WIRE_NCCL ? HP_ALGORITHM_LIBRARY : c->algorithm;
}

/* From messages alone. */
static double modelled(const hp_cost_table *t, const hp_machine *m, const hp_allreduce_case *c,
                       double bytes) {
    const transport intra = transport_of(t, m, c->by, true, bytes),
                    inter = transport_of(t, m, c->by, false, bytes);
    const transport *outer = c->per_node >= c->ranks ? &intra : &inter;
    const hp_two_lines lines = {intra.line, inter.line};
    const hp_algorithm a = algorithm_of(m, c);
    const double steps = a == HP_ALGORITHM_LIBRARY
                             ? hp_library_seconds(&lines, c->ranks, c->per_node, m->nics_per_node, bytes)
                             : hp_collective_seconds_over(hp_collectives[a], &lines, c->ranks, c->per_node,
                                                          m->nics_per_node, bytes);
    return outer->once_s + bytes * outer->copies_s_per_byte + steps;
}

/* Beyond the measured sizes the model says how much more it takes: few sizes were measured, and far apart. */
static double from_row(const hp_cost_table *t, const hp_machine *m, const hp_allreduce_case *c,
                       const hp_row *row, double bytes) {
    const double last = row->x[row->n - 1];
    if (bytes <= last) return hp_line_at(row->x, row->y, row->n, bytes);
    return row->y[row->n - 1] + fmax(0, modelled(t, m, c, bytes) - modelled(t, m, c, last));
}

static hp_cost when_quiet(const hp_cost_table *t, const hp_machine *m, const hp_allreduce_case *c,
                          double bytes) {
    if (c->ranks <= 1) return (hp_cost){0, 0, 0, HP_SOURCE_MEASURED};
    const hp_row *row = measured_row(t, m, c);
    if (row) return hp_cost_of_row(row, from_row(t, m, c, row, bytes));
    const double seconds = modelled(t, m, c, bytes);
    const hp_cost message = hp_quiet_p2p(t, m, c->by, c->per_node >= c->ranks, bytes);
    const double spread = message.seconds > 0 ? (message.high - message.seconds) / message.seconds : 0;
    return (hp_cost){seconds, seconds * (1 - spread), seconds * (1 + spread),
                     message.source == HP_SOURCE_MEASURED ? HP_SOURCE_GUESS : message.source};
}

hp_cost hp_cost_allreduce(const hp_cost_table *t, const hp_machine *m, const hp_allreduce_case *c,
                          double bytes) {
    return hp_cost_times(when_quiet(t, m, c, bytes), hp_speed_of_copy(&t->speed, m, bytes));
}
