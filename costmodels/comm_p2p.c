/* comm_p2p.c - cost of one message: the measured line of its link and back end, otherwise latency + bytes /
 * bandwidth (Hockney 1994), plus the back end's overhead: a kernel's launch, copies to the host and back. */
#include "costmodels/cost_line.h"
#include "costmodels/models.h"
#include "costmodels/cost_speed.h"

#include <math.h>

static double link_seconds(const hp_row *row, const hp_link_class *link, double rate, double bytes) {
    return link->latency_s * row->y[HP_LINK_LATENCY] + bytes / (rate * row->y[HP_LINK_BANDWIDTH]);
}

/* Latency and rate from the data sheet. */
static hp_cost from_link(const hp_cost_table *t, const hp_link_class *link, double bytes) {
    const hp_row *row = hp_rows_find(t, HP_ROW_LINK, link->name, "");
    HP_ASSERT(row); /* the shipped table has a row for every link */
    return hp_cost_of_row(row, link_seconds(row, link, link->bytes_per_s, bytes));
}

double hp_link_effective(const hp_cost_table *t, const hp_link_class *link) {
    const hp_row *row = hp_rows_find(t, HP_ROW_LINK, link->name, "");
    return link->bytes_per_s * (row ? row->y[HP_LINK_BANDWIDTH] : 1);
}

double hp_link_rate(const hp_cost_table *t, const hp_link_class *link) {
    const hp_row *row = hp_rows_find(t, HP_ROW_LINK, link->name, "");
    return row && row->y[HP_LINK_RATE] > 0 ? row->y[HP_LINK_RATE] : link->bytes_per_s;
}

/* How much longer a message takes here than over the measured link. */
static double slower(const hp_cost_table *t, const hp_link_class *link, double bytes) {
    const hp_row *row = hp_rows_find(t, HP_ROW_LINK, link->name, "");
    const double there =
        row && row->y[HP_LINK_RATE] > 0 ? link_seconds(row, link, row->y[HP_LINK_RATE], bytes) : 0;
    return there > 0 ? link_seconds(row, link, link->bytes_per_s, bytes) / there : 1;
}

static hp_cost from_row(const hp_cost_table *t, const hp_link_class *link, const hp_row *row, double bytes) {
    const double first = row->x[0];
    if (row->n > 1 || bytes <= first)
        return hp_cost_of_row(row, slower(t, link, bytes) * hp_line_at(row->x, row->y, row->n, bytes));
    /* a single size has no slope; uses the data sheet's */
    return hp_cost_of_row(row, slower(t, link, first) * row->y[0] + from_link(t, link, bytes).seconds -
                                   from_link(t, link, first).seconds);
}

/* The wire that carries it: hplan's own steps use MPI's messages, which between processors are those of the
 * link. */
static hp_wire carrier_of(const hp_machine *m, hp_wire by) {
    if (m->device.is_cpu) return by == HP_WIRE_SHM ? by : HP_WIRE_ANY;
    return by == HP_WIRE_OWN ? HP_WIRE_MPI : by;
}

const hp_row *hp_comm_path(const hp_cost_table *t, const hp_machine *m, hp_wire by, bool same_node,
                           bool message) {
    by = carrier_of(m, by);
    if (by == HP_WIRE_ANY) return NULL;
    const char *link = same_node ? m->intra.name : m->inter.name;
    const hp_row *peer =
        by == HP_WIRE_MPI && same_node && message ? hp_rows_find(t, HP_ROW_PATH, link, "ipc") : NULL;
    const hp_row *path = peer ? peer : hp_rows_find(t, HP_ROW_PATH, link, hp_backend_names[by - 1]);
    HP_ASSERT(path); /* the shipped table has a row for every back end */
    return path;
}

/* The sum of two consecutive costs; the source is the less certain of the two. */
static hp_cost add_costs(hp_cost a, hp_cost b) {
    return (hp_cost){a.seconds + b.seconds, a.low + b.low, a.high + b.high,
                     a.source > b.source ? a.source : b.source};
}

/* Without a particular back end: the link alone. */
static hp_cost over_link(const hp_cost_table *t, const hp_link_class *link, double bytes) {
    const hp_row *row = hp_rows_find(t, HP_ROW_P2P, link->name, "");
    return row ? from_row(t, link, row, bytes) : from_link(t, link, bytes);
}

static hp_cost over_path(const hp_cost_table *t, const hp_link_class *link, const hp_row *path,
                         bool same_node, double bytes) {
    const double host = same_node ? path->y[HP_PATH_HOST] : 0, copies = path->y[HP_PATH_COPIES];
    double seconds = path->y[HP_PATH_LATENCY] + (copies > 0 ? bytes / copies : 0);
    if (host > 0) return hp_cost_of_row(path, seconds + path->y[HP_PATH_HOP] + bytes / host);
    return add_costs(hp_cost_of_row(path, seconds), over_link(t, link, bytes));
}

hp_cost hp_quiet_p2p(const hp_cost_table *t, const hp_machine *m, hp_wire by, bool same_node, double bytes) {
    const hp_link_class *link = same_node ? &m->intra : &m->inter;
    by = carrier_of(m, by);
    if (by == HP_WIRE_ANY) return over_link(t, link, bytes);
    const hp_row *row = hp_rows_find(t, HP_ROW_P2P, link->name, hp_backend_names[by - 1]);
    if (row) return from_row(t, link, row, bytes);
    const hp_row *regime = by == HP_WIRE_MPI ? hp_mpi_regime(t, m, same_node, bytes) : NULL;
    if (regime)
        return hp_cost_of_row(regime, hp_mpi_message_seconds(regime, hp_link_effective(t, link), bytes));
    return over_path(t, link, hp_comm_path(t, m, by, same_node, true), same_node, bytes);
}

hp_cost hp_cost_p2p(const hp_cost_table *t, const hp_machine *m, hp_wire by, bool same_node, double bytes) {
    const double slowdown = same_node ? hp_speed_of_copy(&t->speed, m, bytes) : 1;
    return hp_cost_times(hp_quiet_p2p(t, m, by, same_node, bytes), slowdown);
}
