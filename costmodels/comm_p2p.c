/* comm_p2p.c - one message: the measured line of its link class, else latency + bytes / bandwidth (Hockney
 * 1994). */
#include "costmodels/line.h"
#include "costmodels/models.h"

/* Latency and rate of the data sheet. */
static hp_cost from_link(const hp_cost_table *t, const hp_link_class *link, double bytes) {
    const hp_row *row = hp_rows_find(t, HP_ROW_LINK, link->name, "");
    HP_ASSERT(row); /* the shipped table has a row for every link */
    const double seconds =
        link->latency_s * row->y[HP_LINK_LATENCY] + bytes / (link->bytes_per_s * row->y[HP_LINK_BANDWIDTH]);
    return hp_cost_of_row(row, seconds);
}

hp_cost hp_cost_p2p(const hp_cost_table *t, const hp_machine *m, bool same_node, double bytes) {
    const hp_link_class *link = same_node ? &m->intra : &m->inter;
    const hp_row *row = hp_rows_find(t, HP_ROW_P2P, link->name, "");
    if (!row) return from_link(t, link, bytes);
    const double first = row->x[0];
    if (row->n > 1 || bytes <= first) return hp_cost_of_row(row, hp_line_at(row->x, row->y, row->n, bytes));
    /* a single size has no slope: the data sheet's */
    return hp_cost_of_row(row,
                          row->y[0] + from_link(t, link, bytes).seconds - from_link(t, link, first).seconds);
}
