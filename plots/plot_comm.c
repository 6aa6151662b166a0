/* plot_comm.c - measured times of collectives against their size, both logarithmic: a panel per operation,
 * number of ranks and link, a line per back end and algorithm. A strip below says which is the fastest. */
#include "plots/plots.h"

#include <math.h>
#include <string.h>

enum {
    ACROSS = 3,
    PANELS = ACROSS * ACROSS,
    PANELS_DUMB = 2,
    PANEL_WIDTH = 290,
    PANEL_HEIGHT = 230,
    COLORS = 8
};
/* Colours of Okabe and Ito 2008, as numbers: lines in one file can have different colours. */
static const long colors[COLORS] = {0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7,
                                    0xE69F00, 0x56B4E9, 0x999999, 0x000000};

#define COLLECTIVE(ID, name, ...) name " "
static const char script[] =
    "ops = '"
#include "plan/collectives/collectives.def"
    "'\n"
    "line(p, i) = sprintf('line%d_%d', p, i)\n"
    "set logscale xy\n" /* with base 2, gnuplot 5.4 puts a tick at 60 kiB and labels it so */
    "set xtics 1024, (width / columns < 380 ? 1024 : 64)\n"
    "set format x '%.0b %BB'\n"
    "set format y '%.0s %cs'\n"
    "set key inside top left Left reverse samplen 1.5\n"
    "if (!is_dumb) { set key font ',9'; set xlabel 'bytes of the whole data' offset 0, 0.4 }\n"
    "mark(i) = int(word('7 5 9 13 11 6 4 8', int(i) % 8 + 1))\n" /* filled shapes first */
    "set multiplot layout (n_panel + columns - 1) / columns, columns title picture_title noenhanced\n"
    "do for [p = 0:n_panel-1] {\n"
    "  n = value(sprintf('n_line%d', p))\n"
    "  ranks = value(sprintf('ranks%d', p))\n"
    "  nodes = value(sprintf('nodes%d', p))\n"
    "  low = value(sprintf('low%d', p))\n"
    "  high = value(sprintf('high%d', p))\n"
    "  link = ''\n"
    "  set table $ignored\n"
    "  plot sprintf('link%d', p) using (link = strcol(1), 0):(0) with table\n"
    "  unset table\n"
    "  set title word(ops, value(sprintf('op%d', p)) + 1).sprintf(', %d ranks', ranks).\\\n"
    "    (nodes > 1 ? sprintf(' on %d nodes', nodes) : '').(strlen(link) ? ', '.link : '') noenhanced\n"
    "  fastest = sprintf('fastest%d', p)\n"
    "  if (is_dumb) {\n"
    "    plot for [i = 0:n-1] line(p, i) using 1:2 with lines title columnheader(4), \\\n"
    "      fastest using 1:2 with points pt 'O' title 'fastest'\n"
    "  } else {\n"
    "    strip = low / (high / low) ** 0.12\n" /* the key has room above the lines: a tenth for each */
    "    set yrange [low / (high / low) ** 0.2 : high * (high / low) ** (0.1 * (n + 1))]\n"
    "    plot fastest using 1:(strip):3 with lines lw 7 lc rgb variable notitle, \\\n"
    "      fastest using 1:(strip):(mark($4)) with points ps 0.5 pt variable lc rgb '#ffffff' notitle, \\\n"
    "      for [i = 0:n-1] line(p, i) using 1:2:3 with linespoints lw 1.5 pt mark(i) ps 0.7 lc rgb "
    "variable title columnheader(4), \\\n"
    "      keyentry with lines lw 7 lc rgb '#666666' title 'strip: the fastest'\n"
    "  }\n"
    "}\n"
    "unset multiplot\n";

/* Skips sizes and times of 0, which have no logarithm. */
static void write_points(FILE *f, const hp_plot_comm_line *l, int way) {
    for (int k = 0; k < l->n; k++)
        if (l->bytes[k] > 0 && l->seconds[k] > 0)
            fprintf(f, "%.9g\t%.9g\t%ld\t%d\n", l->bytes[k], l->seconds[k], colors[way % COLORS], way);
}

static hp_status write_line(hp_canvas *c, int panel, int i, const hp_plot_comm_line *l, hp_error *err) {
    char file[32];
    FILE *f = NULL;
    snprintf(file, sizeof file, "line%d_%d", panel, i);
    HP_TRY(hp_canvas_data(c, file, &f, err));
    fputs("bytes\tseconds\tcolor\t", f);
    hp_canvas_text(f, l->name);
    fputc('\n', f);
    write_points(f, l, i);
    return hp_canvas_data_end(f, err);
}

static hp_status write_fastest(hp_canvas *c, int panel, const hp_plot_comm_panel *p, hp_error *err) {
    char file[32];
    FILE *f = NULL;
    snprintf(file, sizeof file, "fastest%d", panel);
    HP_TRY(hp_canvas_data(c, file, &f, err));
    for (int i = 0; i < p->n_fastest; i++) {
        write_points(f, &p->fastest[i].piece, p->fastest[i].line);
        fputc('\n', f);
    }
    return hp_canvas_data_end(f, err);
}

static void set_number(hp_canvas *c, const char *name, int panel, double value) {
    char variable[32];
    snprintf(variable, sizeof variable, "%s%d", name, panel);
    hp_canvas_number(c, variable, value);
}

static hp_status write_link(hp_canvas *c, int panel, const char *link, hp_error *err) {
    char file[32];
    FILE *f = NULL;
    snprintf(file, sizeof file, "link%d", panel);
    HP_TRY(hp_canvas_data(c, file, &f, err));
    hp_canvas_text(f, link ? link : "");
    fputc('\n', f);
    return hp_canvas_data_end(f, err);
}

/* The range of the times that can be drawn. */
static void set_extent(hp_canvas *c, int panel, const hp_plot_comm_panel *p) {
    double low = INFINITY, high = 0;
    for (int i = 0; i < p->n_line; i++)
        for (int k = 0; k < p->line[i].n; k++) {
            if (p->line[i].seconds[k] > 0) low = fmin(low, p->line[i].seconds[k]);
            high = fmax(high, p->line[i].seconds[k]);
        }
    set_number(c, "low", panel, low / 1.05); /* of one point, too, a range */
    set_number(c, "high", panel, high * 1.05);
}

static hp_status write_panel(hp_canvas *c, int panel, const hp_plot_comm_panel *p, hp_error *err) {
    set_number(c, "op", panel, p->what);
    set_number(c, "ranks", panel, p->ranks);
    set_number(c, "nodes", panel, p->nodes);
    set_number(c, "n_line", panel, p->n_line);
    set_extent(c, panel, p);
    HP_TRY(write_link(c, panel, p->link, err));
    for (int i = 0; i < p->n_line; i++) HP_TRY(write_line(c, panel, i, &p->line[i], err));
    return write_fastest(c, panel, p, err);
}

/* Does it have a size that can be drawn? */
static bool is_drawable(const hp_plot_comm_panel *p) {
    for (int i = 0; i < p->n_line; i++)
        if (p->line[i].n > 0 && p->line[i].bytes[p->line[i].n - 1] > 0) return true;
    return false;
}

/* Chooses panels, first those where lines cross. */
static int choose_panels(const hp_plot_comm_panel *p, int n, int most,
                         const hp_plot_comm_panel *chosen[PANELS]) {
    int kept = 0;
    for (int several = 1; several >= 0; several--)
        for (int i = 0; i < n && kept < most; i++)
            if ((p[i].n_line > 1) == several && is_drawable(&p[i])) chosen[kept++] = &p[i];
    return kept;
}

static int clamp(int n) {
    return n < 1 ? 1 : n > ACROSS ? ACROSS : n;
}

/* How many panels fit beside each other, and how many in all. */
static int fit_panels(const hp_canvas *c, int *most) {
    *most = PANELS_DUMB;
    if (c->format == HP_CANVAS_DUMB) return 1;
    *most = clamp(c->width / PANEL_WIDTH) * clamp(c->height / PANEL_HEIGHT);
    return clamp(c->width / PANEL_WIDTH);
}

hp_status hp_plot_comm(const hp_plot_comm_source *s, hp_canvas *c, hp_error *err) {
    const hp_plot_comm_panel *chosen[PANELS];
    int most;
    const int across = fit_panels(c, &most), panels = choose_panels(s->panel, s->n, most, chosen);
    if (panels == 0)
        return hp_fail(err, HP_EDATA,
                       "%s: holds no measured collectives; hplan calibrate --comm measures them, hplan "
                       "calibrate --import takes them from nccl-tests or OSU text",
                       s->path);
    for (int p = 0; p < panels; p++) HP_TRY(write_panel(c, p, chosen[p], err));
    char title[400], some[60] = "";
    if (panels < s->n) snprintf(some, sizeof some, " (%d of %d)", panels, s->n);
    snprintf(title, sizeof title, "collectives: %.300s%s", s->origin, some);
    HP_TRY(hp_canvas_title(c, title, err));
    hp_canvas_number(c, "n_panel", panels);
    hp_canvas_number(c, "columns", panels < across ? panels : across);
    return hp_canvas_render(c, script, err);
}
