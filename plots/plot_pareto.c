/* plot_pareto.c - images/s against the memory of the fullest rank: one point per candidate, and the front of
 * these two and device hours, one colour per file. With one number of devices the front is a line; with
 * several, its colour shows the device hours. */
#include "plots/plots.h"

#include "base/front.h"
#include "plots/spots.h"
#include "traces/trace_text.h"

#include <math.h>
#include <string.h>

enum {
    MOST_NAMES = 12,    /* strategies named, if there is a single file; above all points */
    ROW = 15,           /* pixels of a line of names */
    HOURS_COLUMNS = 20, /* of the title, which is above the points: as wide as the scale of hours */
    LABEL_WIDTH = 16,
    LABEL_HEIGHT = 13
};

/* Of the picture: what axes, title and key leave to the points; estimates. */
static const double INNER_WIDTH = 0.86, INNER_HEIGHT = 0.7;

/* Numbers beside the points of a short front, and their names. */
#define NAMES                                                                                                \
    "n_name ? 'names' : front(0) using 4:5:(n_name ? sprintf('%d', $0 + 1) : '') with labels font ',9' "     \
    "notitle, \\\n"                                                                                          \
    "  n_name ? 'names' : front(0) using (first_x):(n_name ? top - row * ($0 + 0.7) : NaN):3 "               \
    "with labels noenhanced font ',9' left notitle\n"

static const char script[] =
    "set title picture_title noenhanced\n"
    "set xrange [low_x : high_x]\n"
    "set yrange [0 : top]\n"
    "set xtics () nomirror out\n"
    "if (is_log) {\n"
    "set xtics autofreq nomirror out\n"
    "set logscale x\n"
    "set format x '%.0s %cB'\n"
    "do for [d = 4:13] {\n"
    "  do for [k in '2 5'] { set xtics add (gprintf('%.0s %cB', k * 10.0 ** d) k * 10.0 ** d) }\n"
    "}\n"
    "} else {\n"
    "step = nice((high_x - low_x) / 4)\n" /* whole numbers of a unit, about five */
    "unit = int(floor(log10(high_x) / 3 + 1e-9))\n"
    "do for [k = int(ceil(low_x / step)) : int(floor(high_x / step))] {\n"
    "  set xtics add (sprintf('%g %s', k * step / 1000.0 ** unit, word('B kB MB GB TB PB', unit + 1)) k * "
    "step)\n"
    "}\n"
    "}\n"
    "set xlabel 'memory of the fullest rank (less is better)'\n"
    "set ylabel 'images/s (more is better)'\n"
    "if (is_dumb) { set key bottom right } else { set key tmargin left vertical maxrows 5 Left reverse "
    "samplen 1.5 }\n"
    "color(i) = word('#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #999999 #000000', i % 8 + 1)\n"
    "full(i) = int(word('7 5 9 11 13', i % 5 + 1))\n" /* the same shape without filling is one less */
    "all(i) = sprintf('all%d', i)\n"
    "front(i) = sprintf('front%d', i)\n"
    "set palette defined (0 '#00224E', 1 '#7C7B78', 2 '#FFB000')\n" /* dark to light in grey, too */
    "set cblabel 'device hours per million images' offset 1\n"
    "set format cb '%.3g'\n"
    "beaten = 'beaten: another is better, and worse in nothing'\n"
    "if (by_hours) {\n"
    "set rmargin 16\n"
    "set cbrange [0.9 * min_hours : 1.1 * max_hours]\n"
    "plot all(0) using 1:2 with points lc rgb '#888888' pt 6 ps 0.7 title beaten, \\\n"
    "  'hours' using 1:2:3 with points palette pt 7 ps 1.4 title columnheader(4), \\\n"
    "  " NAMES "} else {\n"
    "plot for [i = 0:n_series-1] all(i) using 1:2 with points lc rgb color(i) pt full(i) - 1 ps 0.7 "
    "notitle, \\\n"
    "  for [i = 0:n_series-1] front(i) using 1:2 with steps lc rgb color(i) lw 2 notitle, \\\n"
    "  for [i = 0:n_series-1] front(i) using 1:2 with points lc rgb color(i) pt full(i) ps 1 title "
    "columnheader(3), \\\n"
    "  keyentry with points lc rgb '#444444' pt 6 ps 0.7 title beaten, \\\n"
    "  " NAMES "}\n";

static bool is_feasible(const hp_plot_candidate *c) {
    return isfinite(c->memory_bytes) && c->memory_bytes > 0 && isfinite(c->images_per_s) &&
           c->images_per_s > 0;
}

static int stored_front(const hp_plot_source *s, const hp_plot_candidate **front) {
    int n = 0;
    for (int i = 0; i < s->n_front && n < s->n_candidate; i++)
        for (int k = 0; k < s->n_candidate; k++)
            if (s->candidate[k].rank == s->front[i] && is_feasible(&s->candidate[k])) {
                front[n++] = &s->candidate[k];
                break;
            }
    return n;
}

int hp_plot_front(hp_arena *arena, const hp_plot_source *s, const hp_plot_candidate **front) {
    if (s->n_front) return stored_front(s, front);
    hp_front_point *p = HP_NEW(arena, hp_front_point, s->n_candidate + 1);
    int *index = HP_NEW(arena, int, s->n_candidate + 1);
    for (int i = 0; i < s->n_candidate; i++) {
        const hp_plot_candidate *c = &s->candidate[i];
        p[i] = (hp_front_point){c->images_per_s, c->memory_bytes, c->gpus};
    }
    const int n = hp_front(arena, p, s->n_candidate, index);
    for (int i = 0; i < n; i++) front[i] = &s->candidate[index[i]];
    return n;
}

static bool has_counts(const hp_plot_candidate **front, int n) {
    for (int i = 1; i < n; i++)
        if (front[i]->gpus != front[0]->gpus) return true;
    return false;
}

static const char *series_name(hp_arena *arena, const hp_plot_source *s, int n_source) {
    const char *slash = strrchr(s->path, '/'), *file = slash ? slash + 1 : s->path;
    if (n_source == 1) return "not beaten in throughput, memory and device hours";
    return hp_text_clean(arena, hp_arena_printf(arena, "best of %.60s (%.100s)", s->net, file));
}

static hp_status write_all(hp_canvas *c, int index, const hp_plot_source *s, hp_error *err) {
    char file[32];
    FILE *f = NULL;
    snprintf(file, sizeof file, "all%d", index);
    HP_TRY(hp_canvas_data(c, file, &f, err));
    for (int i = 0; i < s->n_candidate; i++)
        if (is_feasible(&s->candidate[i]))
            fprintf(f, "%.9g\t%.9g\n", s->candidate[i].memory_bytes, s->candidate[i].images_per_s);
    return hp_canvas_data_end(f, err);
}

static hp_status write_front(hp_canvas *c, int index, const char *name, const hp_plot_candidate **front,
                             int n, hp_error *err) {
    char file[32];
    FILE *f = NULL;
    snprintf(file, sizeof file, "front%d", index);
    HP_TRY(hp_canvas_data(c, file, &f, err));
    fputs("bytes\timages\t", f);
    hp_canvas_text(f, name);
    fputc('\n', f);
    for (int i = 0; i < n; i++) fprintf(f, "%.9g\t%.9g\t\n", front[i]->memory_bytes, front[i]->images_per_s);
    return hp_canvas_data_end(f, err);
}

/* Device hours per million images. */
static double hours_of(const hp_plot_candidate *c) {
    static const double HOUR_S = 3600;
    return 1e6 * c->gpus / c->images_per_s / HOUR_S;
}

static hp_status write_hours(hp_canvas *c, const hp_plot_candidate **front, int n, hp_error *err) {
    FILE *f = NULL;
    HP_TRY(hp_canvas_data(c, "hours", &f, err));
    fputs("bytes\timages\thours\t", f);
    hp_canvas_text(f, "not beaten in throughput, memory and device hours");
    fputc('\n', f);
    for (int i = 0; i < n; i++)
        fprintf(f, "%.9g\t%.9g\t%.9g\t\n", front[i]->memory_bytes, front[i]->images_per_s,
                hours_of(front[i]));
    return hp_canvas_data_end(f, err);
}

typedef struct extent {
    double min_bytes, max_bytes, max_rate;
    int n_name;
    bool by_hours;
    double min_hours, max_hours; /* range on the front, if it has hours */
} extent;

/* The axes: memory is logarithmic if it differs by more than a few times. Names are above the points. */
typedef struct axes {
    bool is_log;
    double low_x, high_x, top, row; /* row: of a name */
    double width, height;           /* pixels between the axes, on a terminal characters */
    bool is_dumb;
} axes;

static axes axes_of(const hp_canvas *c, const extent *e) {
    const bool is_dumb = c->format == HP_CANVAS_DUMB;
    const double width = INNER_WIDTH * c->width, height = INNER_HEIGHT * c->height, row = is_dumb ? 1 : ROW,
                 spread = e->max_bytes / e->min_bytes;
    axes a = {.is_log = spread > 4, .width = width, .height = height, .is_dumb = is_dumb};
    const double margin = a.is_log ? 0 : fmax(0.15 * (e->max_bytes - e->min_bytes), 0.02 * e->max_bytes);
    a.low_x = a.is_log ? e->min_bytes / 1.3 : e->min_bytes - margin;
    a.high_x = a.is_log ? e->max_bytes * 1.3 : e->max_bytes + margin;
    a.top = 1.1 * e->max_rate / (1 - fmin(0.6, row * (e->n_name + 1) / height));
    a.row = a.top * fmin(0.6 / (e->n_name + 1), row / height);
    return a;
}

static hp_spot spot_of(const axes *a, const hp_plot_candidate *c) {
    const double x = a->is_log ? log(c->memory_bytes / a->low_x) / log(a->high_x / a->low_x)
                               : (c->memory_bytes - a->low_x) / (a->high_x - a->low_x);
    return (hp_spot){x * a->width, c->images_per_s / a->top * a->height};
}

static double bytes_at(const axes *a, double x) {
    const double share = x / a->width;
    return a->is_log ? a->low_x * pow(a->high_x / a->low_x, share)
                     : a->low_x + share * (a->high_x - a->low_x);
}

/* Centres of the numbers beside the front's points, which avoid the other candidates', too. */
static hp_spot *label_spots(hp_arena *arena, const axes *a, const hp_plot_source *s,
                            const hp_plot_candidate **front, int n) {
    hp_spot *point = HP_NEW(arena, hp_spot, n + s->n_candidate), *label = HP_NEW(arena, hp_spot, n);
    int all = 0;
    while (all < n) point[all] = spot_of(a, front[all]), all++;
    for (int i = 0; i < s->n_candidate; i++)
        if (is_feasible(&s->candidate[i])) point[all++] = spot_of(a, &s->candidate[i]);
    hp_spot_labels(point, all, n, a->is_dumb ? 3 : LABEL_WIDTH, a->is_dumb ? 1.5 : LABEL_HEIGHT, label);
    return label;
}

static hp_status write_names(hp_arena *arena, hp_canvas *c, const axes *a, const hp_plot_source *s,
                             const hp_plot_candidate **front, int n, hp_error *err) {
    FILE *f = NULL;
    const hp_spot *label = label_spots(arena, a, s, front, n);
    HP_TRY(hp_canvas_data(c, "names", &f, err));
    for (int i = 0; i < n; i++) {
        fprintf(f, "%.9g\t%.9g\t", front[i]->memory_bytes, front[i]->images_per_s);
        hp_canvas_text(f, hp_text_clean(arena, hp_arena_printf(arena, "%d: %s", i + 1, front[i]->strategy)));
        fprintf(f, "\t%.9g\t%.9g\n", bytes_at(a, label[i].x), label[i].y / a->height * a->top);
    }
    return hp_canvas_data_end(f, err);
}

static void extend(extent *e, const hp_plot_source *s) {
    for (int i = 0; i < s->n_candidate; i++) {
        const hp_plot_candidate *c = &s->candidate[i];
        if (!is_feasible(c)) continue;
        e->min_bytes = fmin(e->min_bytes, c->memory_bytes);
        e->max_bytes = fmax(e->max_bytes, c->memory_bytes);
        e->max_rate = fmax(e->max_rate, c->images_per_s);
    }
}

static hp_status render(hp_canvas *c, int n_series, const extent *e, const axes *a, hp_error *err) {
    hp_canvas_number(c, "n_series", n_series);
    hp_canvas_number(c, "is_log", a->is_log);
    hp_canvas_number(c, "low_x", a->low_x);
    hp_canvas_number(c, "high_x", a->high_x);
    hp_canvas_number(c, "first_x", bytes_at(a, 0.02 * a->width));
    hp_canvas_number(c, "top", a->top);
    hp_canvas_number(c, "row", a->row);
    hp_canvas_number(c, "n_name", e->n_name);
    hp_canvas_number(c, "by_hours", e->by_hours);
    if (e->by_hours) hp_canvas_number(c, "min_hours", e->min_hours);
    if (e->by_hours) hp_canvas_number(c, "max_hours", e->max_hours);
    return hp_canvas_render(c, script, err);
}

/* Draws a file's candidates and their front; of a single file, too, hours and names. */
static hp_status add_source(hp_arena *arena, hp_canvas *c, const hp_plot_source *s, int n, int *n_series,
                            extent *e, hp_error *err) {
    const hp_plot_candidate **front = HP_NEW(arena, const hp_plot_candidate *, s->n_candidate + 1);
    const int on_it = hp_plot_front(arena, s, front);
    if (!on_it) return HP_OK;
    HP_TRY(write_all(c, *n_series, s, err));
    HP_TRY(write_front(c, (*n_series)++, series_name(arena, s, n), front, on_it, err));
    extend(e, s);
    if (n > 1) return HP_OK;
    e->by_hours = has_counts(front, on_it);
    if (e->by_hours) HP_TRY(write_hours(c, front, on_it, err));
    for (int k = 0; k < on_it; k++) {
        e->min_hours = fmin(e->min_hours, hours_of(front[k]));
        e->max_hours = fmax(e->max_hours, hours_of(front[k]));
    }
    e->n_name = on_it <= MOST_NAMES ? on_it : 0;
    const axes a = axes_of(c, e);
    return e->n_name ? write_names(arena, c, &a, s, front, on_it, err) : HP_OK;
}

hp_status hp_plot_pareto(hp_arena *arena, const hp_plot_source *s, int n, hp_canvas *c, hp_error *err) {
    extent e = {.min_bytes = INFINITY, .min_hours = INFINITY};
    int n_series = 0;
    for (int i = 0; i < n; i++) HP_TRY(add_source(arena, c, &s[i], n, &n_series, &e, err));
    if (n_series == 0)
        return hp_fail(err, HP_EDATA,
                       "%s: holds no candidates; make some with `hplan simulate --all --out plan.db`",
                       s->path);
    if (e.by_hours) c->columns -= HOURS_COLUMNS;
    static const char what[] = "throughput against memory";
    HP_TRY(hp_canvas_title(c, n == 1 ? hp_plot_heading(arena, s, what) : what, err));
    const axes a = axes_of(c, &e);
    return render(c, n_series, &e, &a, err);
}
