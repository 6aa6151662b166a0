/* comm_p2p.c - one message: the measured line of its link class, else latency + bytes / bandwidth (Hockney 1994). */
#include "costmodels/line.h"
#include "costmodels/models.h"

hp_cost hp_cost_p2p(const hp_cost_table *t, const hp_machine *m, bool same_node, double bytes) {
    const hp_link_class *link = same_node ? &m->intra : &m->inter;
    const hp_row *row = hp_rows_find(t, HP_ROW_P2P, link->name, "");
    if (row) return hp_cost_of_row(row, hp_line_at(row->x, row->y, row->n, bytes));
    row = hp_rows_find(t, HP_ROW_LINK, link->name, "");
    HP_ASSERT(row); /* the shipped table has a row for every link */
    const double seconds = link->latency_s * row->y[HP_LINK_LATENCY] +
                           bytes / (link->bytes_per_s * row->y[HP_LINK_BANDWIDTH]);
    return hp_cost_of_row(row, seconds);
}
