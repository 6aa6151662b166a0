/* link_fit.c - latency and rate of a link, from messages measured over it. */
#include "costmodels/link_fit.h"

#include "costmodels/cost_fit.h"

#include <math.h>
#include <string.h>

bool hp_link_leaves(const hp_machine *m, const char *class) {
    return m->nodes > 1 && strcmp(m->inter.name, class) == 0;
}

/* Searches only the table itself, not its fallbacks. */
static const hp_row *messages_over(const hp_cost_table *t, const char *link) {
    for (int i = 0; i < t->n; i++)
        if (t->row[i].kind == HP_ROW_P2P && strcmp(t->row[i].class, link) == 0) return &t->row[i];
    return NULL;
}

/* The rate is that of large messages: small ones may fit in the buffers of a switch or socket. The latency is
 * the rest of the smallest message's time. */
static bool fit_line(const hp_row *line, double *latency, double *beta) {
    static const double LARGE = 1.0 / 8;
    int first = line->n - 1;
    double alpha;
    while (first > 0 && line->x[first - 1] >= LARGE * line->x[line->n - 1]) first--;
    if (!hp_fit_alpha_beta(line->x + first, line->y + first, line->n - first, &alpha, beta)) return false;
    *latency = fmax(0, line->y[0] - line->x[0] * *beta);
    return *beta > 0;
}

void hp_link_fit_row(hp_cost_table *t, const hp_machine *m) {
    const hp_row *line = m->nodes > 1 ? messages_over(t, m->inter.name) : NULL;
    double latency, beta;
    if (!line || !fit_line(line, &latency, &beta)) return;
    double x[3] = {0, 1, 2},
           y[3] = {[HP_LINK_LATENCY] = m->inter.latency_s > 0 ? latency / m->inter.latency_s : 1,
                   [HP_LINK_BANDWIDTH] = 1 / (beta * m->inter.bytes_per_s),
                   [HP_LINK_RATE] = m->inter.bytes_per_s};
    hp_rows_add(t, &(hp_row){.kind = HP_ROW_LINK,
                             .class = m->inter.name,
                             .key = "",
                             .source = HP_SOURCE_MEASURED,
                             .residual = line->residual,
                             .samples = line->samples,
                             .where = "a line through the measured messages",
                             .n = 3,
                             .x = x,
                             .y = y});
    hp_rows_sort(t);
}
