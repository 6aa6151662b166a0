/* comm_panels.c - a panel per operation and number of ranks, a line per back end and algorithm. */
#include "cli/show/comm_panels.h"

#include "costmodels/cost_stored.h"
#include "costmodels/tuning/fastest.h"
#include "traces/trace_text.h"

#include <math.h>

/* "own.ring" */
static const char *name_of(hp_arena *arena, const hp_collective_call *c) {
    if (!c->by) return "published";
    const char *by = hp_backend_names[c->by - 1];
    return c->algorithm ? hp_arena_printf(arena, "%s.%s", by, hp_algorithms[c->algorithm]->name) : by;
}

/* A row's points from one size to another, both included. */
static hp_plot_comm_line piece_of(hp_arena *arena, const hp_row *r, double from, double to) {
    double *bytes = HP_NEW(arena, double, r->n + 2), *seconds = HP_NEW(arena, double, r->n + 2);
    int n = 0;
    bytes[n] = from;
    seconds[n++] = hp_row_at(r, from);
    for (int k = 0; k < r->n; k++) {
        if (r->x[k] <= from || r->x[k] >= to) continue;
        bytes[n] = r->x[k];
        seconds[n++] = r->y[k];
    }
    bytes[n] = to;
    seconds[n++] = hp_row_at(r, to);
    return (hp_plot_comm_line){.n = n, .bytes = bytes, .seconds = seconds};
}

static hp_plot_comm_panel panel_of(hp_arena *arena, const hp_rivals *g) {
    hp_fastest *w;
    hp_plot_comm_panel p = {.what = g->what,
                            .link = hp_text_clean(arena, g->class),
                            .ranks = g->ranks,
                            .nodes = (g->ranks + g->per_node - 1) / g->per_node,
                            .n_line = g->n,
                            .n_fastest = hp_fastest_of(arena, g->row, g->n, &w)};
    p.line = HP_NEW(arena, hp_plot_comm_line, p.n_line);
    p.fastest = HP_NEW(arena, hp_plot_comm_fastest, p.n_fastest);
    for (int i = 0; i < p.n_line; i++)
        p.line[i] =
            (hp_plot_comm_line){name_of(arena, &g->call[i]), g->row[i]->n, g->row[i]->x, g->row[i]->y};
    for (int i = 0; i < p.n_fastest; i++) {
        const hp_row *r = g->row[w[i].row];
        const double last = r->x[r->n - 1], to = i + 1 < p.n_fastest ? fmin(w[i + 1].bytes, last) : last;
        p.fastest[i] = (hp_plot_comm_fastest){w[i].row, piece_of(arena, r, w[i].bytes, to)};
    }
    return p;
}

hp_status comm_panels_read(hp_arena *arena, const char *path, hp_plot_comm_source *out, hp_error *err) {
    hp_cost_table *t = NULL;
    hp_rivals *g;
    HP_TRY(hp_cost_open(arena, path, &t, err));
    *out = (hp_plot_comm_source){.path = hp_text_clean(arena, path),
                                 .origin = hp_cost_origin(t),
                                 .n = hp_rivals_of(arena, t, NULL, &g)};
    out->panel = HP_NEW(arena, hp_plot_comm_panel, out->n);
    for (int i = 0; i < out->n; i++) out->panel[i] = panel_of(arena, &g[i]);
    return HP_OK;
}
