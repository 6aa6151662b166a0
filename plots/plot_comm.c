/* plot_comm.c - measured times of collectives against their size, both logarithmic: a panel per operation and number of
 * ranks, a line per back end and algorithm, with the fastest marked. */
#include "costmodels/tuning/fastest.h"
#include "plots/plots.h"
#include "traces/text.h"

#include <math.h>
#include <string.h>

enum { PANELS = 9, PANELS_DUMB = 2, COLORS = 8 };
/* Okabe and Ito 2008, as numbers: lines of one file can have several colours. */
static const long colors[COLORS] = {0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7,
                                    0xE69F00, 0x56B4E9, 0x999999, 0x000000};

#define COLLECTIVE(ID, name, ...) name " "
static const char script[] =
    "ops = '"
#include "plan/collectives/collectives.def"
    "'\n"
    "line(p, i) = sprintf('line%d_%d', p, i)\n"
    "set logscale xy\n" /* with base 2 gnuplot 5.4 puts a tick at 60 kiB and calls it that */
    "set xtics 1024, 16\n"
    "set format x '%.0b %BB'\n"
    "set format y '%.0s %cs'\n"
    "set key below maxcols 3 samplen 1\n"
    "if (!is_dumb) { set key font ',9' }\n"
    "if (!is_dumb) { set xlabel 'bytes of the whole data' }\n"
    "columns = n_panel > 4 && !is_dumb ? 3 : n_panel > 1 && !is_dumb ? 2 : 1\n"
    "set multiplot layout (n_panel + columns - 1) / columns, columns title picture_title noenhanced\n"
    "do for [p = 0:n_panel-1] {\n"
    "  n = value(sprintf('n_line%d', p))\n"
    "  ranks = value(sprintf('ranks%d', p))\n"
    "  nodes = value(sprintf('nodes%d', p))\n"
    "  set title word(ops, value(sprintf('op%d', p)) + 1).sprintf(', %d ranks', ranks).\\\n"
    "    (nodes > 1 ? sprintf(' on %d nodes', nodes) : '') noenhanced\n"
    "  fastest = sprintf('fastest%d', p)\n"
    "  if (is_dumb) {\n"
    "    plot for [i = 0:n-1] line(p, i) using 1:2 with lines title columnheader(4), \\\n"
    "      fastest using 1:2 with points pt 'O' title 'fastest'\n"
    "  } else {\n"
    "    plot fastest using 1:2:3 with lines lw 7 lc rgb variable notitle, \\\n"
    "      for [i = 0:n-1] line(p, i) using 1:2:3 with lines lw 1.5 lc rgb variable title columnheader(4), "
    "\\\n"
    "      for [i = 0:n-1] line(p, i) using 1:2:3 with points pt 7 ps 0.4 lc rgb variable notitle, \\\n"
    "      keyentry with lines lw 7 lc rgb '#666666' title 'fastest'\n"
    "  }\n"
    "}\n"
    "unset multiplot\n";

/* "own.ring" */
static const char *name_of(hp_arena *arena, const hp_collective_call *c) {
    if (!c->by) return "published";
    const char *by = hp_backend_names[c->by - 1];
    return c->algorithm ? hp_arena_printf(arena, "%s.%s", by, hp_algorithms[c->algorithm]->name) : by;
}

/* Not of no bytes and no time, which logarithms do not have. */
static void write_point(FILE *f, double bytes, double seconds, long color) {
    if (bytes > 0 && seconds > 0) fprintf(f, "%.9g\t%.9g\t%ld\t\n", bytes, seconds, color);
}

static hp_status write_line(hp_arena *arena, hp_canvas *c, int panel, const hp_rivals *g, int i,
                            hp_error *err) {
    char file[32];
    FILE *f = NULL;
    snprintf(file, sizeof file, "line%d_%d", panel, i);
    HP_TRY(hp_canvas_data(c, file, &f, err));
    fputs("bytes\tseconds\tcolor\t", f);
    hp_canvas_text(f, name_of(arena, &g->call[i]));
    fputc('\n', f);
    for (int k = 0; k < g->row[i]->n; k++)
        write_point(f, g->row[i]->x[k], g->row[i]->y[k], colors[i % COLORS]);
    return hp_canvas_data_end(f, err);
}

/* A row's points from one size to another, both included. */
static void write_segment(FILE *f, const hp_row *r, double from, double to, long color) {
    write_point(f, from, hp_row_at(r, from), color);
    for (int k = 0; k < r->n; k++)
        if (r->x[k] > from && r->x[k] < to) write_point(f, r->x[k], r->y[k], color);
    write_point(f, to, hp_row_at(r, to), color);
    fputc('\n', f);
}

static hp_status write_fastest(hp_arena *arena, hp_canvas *c, int panel, const hp_rivals *g, hp_error *err) {
    char file[32];
    FILE *f = NULL;
    hp_fastest *w;
    const int n = hp_fastest_of(arena, g->row, g->n, &w);
    snprintf(file, sizeof file, "fastest%d", panel);
    HP_TRY(hp_canvas_data(c, file, &f, err));
    for (int i = 0; i < n; i++) {
        const hp_row *r = g->row[w[i].row];
        const double last = r->x[r->n - 1];
        write_segment(f, r, w[i].bytes, i + 1 < n ? fmin(w[i + 1].bytes, last) : last,
                      colors[w[i].row % COLORS]);
    }
    return hp_canvas_data_end(f, err);
}

static void set_number(hp_canvas *c, const char *name, int panel, double value) {
    char variable[32];
    snprintf(variable, sizeof variable, "%s%d", name, panel);
    hp_canvas_number(c, variable, value);
}

static hp_status write_panel(hp_arena *arena, hp_canvas *c, int panel, const hp_rivals *g, hp_error *err) {
    set_number(c, "op", panel, g->what);
    set_number(c, "ranks", panel, g->ranks);
    const int nodes = (g->ranks + g->per_node - 1) / g->per_node;
    set_number(c, "nodes", panel, nodes);
    set_number(c, "n_line", panel, g->n);
    for (int i = 0; i < g->n; i++) HP_TRY(write_line(arena, c, panel, g, i, err));
    return write_fastest(arena, c, panel, g, err);
}

/* Has it a size that can be drawn? */
static bool is_drawable(const hp_rivals *g) {
    for (int i = 0; i < g->n; i++)
        if (g->row[i]->x[g->row[i]->n - 1] > 0) return true;
    return false;
}

/* Those first in which something crosses: of several rows. */
static int choose_panels(hp_rivals *g, int n, int most) {
    int kept = 0;
    hp_rivals chosen[PANELS];
    for (int several = 1; several >= 0; several--)
        for (int i = 0; i < n && kept < most; i++)
            if ((g[i].n > 1) == several && is_drawable(&g[i])) chosen[kept++] = g[i];
    if (kept) memcpy(g, chosen, sizeof *g * (size_t)kept);
    return kept;
}

hp_status hp_plot_comm(hp_arena *arena, const hp_plot_source *s, int n, hp_canvas *c, hp_error *err) {
    HP_ASSERT(n == 1);
    hp_rivals *g;
    const int all = hp_rivals_of(arena, s->costs, NULL, &g);
    const int panels = choose_panels(g, all, c->format == HP_CANVAS_DUMB ? PANELS_DUMB : PANELS);
    if (panels == 0)
        return hp_fail(err, HP_EDATA,
                       "%s: holds no measured collectives; hplan calibrate --comm measures them, hplan "
                       "calibrate --import takes them from nccl-tests or OSU text",
                       s->path);
    for (int p = 0; p < panels; p++) HP_TRY(write_panel(arena, c, p, &g[p], err));
    char some[60] = "";
    if (panels < all) snprintf(some, sizeof some, " (%d of %d)", panels, all);
    HP_TRY(hp_canvas_title(c, hp_arena_printf(arena, "collectives: %.300s%s", hp_cost_origin(s->costs), some),
                           err));
    hp_canvas_number(c, "n_panel", panels);
    return hp_canvas_render(c, script, err);
}
