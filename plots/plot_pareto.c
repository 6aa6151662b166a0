/* plot_pareto.c - images/s against the memory of the fullest rank: one point per candidate, and the front of
 * these two and device hours, one colour per file. With one number of devices the front is a line; with
 * several, its colour shows the device hours. */
#include "plots/plots.h"

#include "base/front.h"
#include "traces/trace_text.h"

#include <math.h>
#include <string.h>

enum {
    MOST_NAMES = 12 /* strategies labelled if there is a single file, in the area that the
                     * line never crosses */
};

/* Numbers beside the points of a short front, and their legend. */
#define NAMES                                                                                                \
    "n_name ? 'names' : front(0) using 1:2:(n_name ? sprintf('%d', $0 + 1) : '') with labels font ',9' "     \
    "offset -0.8, 0.6 notitle, \\\n"                                                                         \
    "  n_name ? 'names' : front(0) using (min_bytes / 1.25):(n_name ? top - 0.05 * max_rate * ($0 + 0.7) : " \
    "NaN):3 "                                                                                                \
    "with labels noenhanced font ',9' left notitle\n"

static const char script[] =
    "set title picture_title noenhanced\n"
    "set logscale x\n"
    "set xrange [min_bytes / 1.3 : max_bytes * 1.3]\n"
    "top = max_rate * (1.1 + 0.05 * n_name)\n"
    "set yrange [0 : top]\n"
    "set format x '%.0s %cB'\n"
    "do for [d = 4:13] {\n"
    "  do for [k in '2 5'] { set xtics add (gprintf('%.0s %cB', k * 10.0 ** d) k * 10.0 ** d) }\n"
    "}\n"
    "set xlabel 'memory of the fullest rank'\n"
    "set ylabel 'images/s'\n"
    "set key bottom right Right samplen 2\n"
    "color(i) = word('#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #999999 #000000', i % 8 + 1)\n"
    "all(i) = sprintf('all%d', i)\n"
    "front(i) = sprintf('front%d', i)\n"
    "set palette defined (0 '#0072B2', 1 '#E69F00', 2 '#D55E00')\n"
    "set cblabel 'device hours per million images' offset 2\n"
    "set format cb '%.3g'\n"
    "if (by_hours) {\n"
    "set rmargin at screen 0.82\n"
    "set cbrange [0.9 * min_hours : 1.1 * max_hours]\n"
    "plot all(0) using 1:2 with points lc rgb '#999999' pt 6 ps 0.6 notitle, \\\n"
    "  'hours' using 1:2:3 with points palette pt 7 ps 1.4 title columnheader(4), \\\n"
    "  " NAMES "} else {\n"
    "plot for [i = 0:n_series-1] all(i) using 1:2 with points lc rgb color(i) pt 6 ps 0.6 notitle, \\\n"
    "  for [i = 0:n_series-1] front(i) using 1:2 with steps lc rgb color(i) lw 2 title columnheader(3), \\\n"
    "  for [i = 0:n_series-1] front(i) using 1:2 with points lc rgb color(i) pt 7 ps 0.8 notitle, \\\n"
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
    if (n_source == 1) return "none better in all";
    return hp_text_clean(arena, hp_arena_printf(arena, "%.60s (%.100s)", s->net, file));
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
    hp_canvas_text(f, "none better in time, memory and device hours");
    fputc('\n', f);
    for (int i = 0; i < n; i++)
        fprintf(f, "%.9g\t%.9g\t%.9g\t\n", front[i]->memory_bytes, front[i]->images_per_s,
                hours_of(front[i]));
    return hp_canvas_data_end(f, err);
}

static hp_status write_names(hp_arena *arena, hp_canvas *c, const hp_plot_candidate **front, int n,
                             hp_error *err) {
    FILE *f = NULL;
    HP_TRY(hp_canvas_data(c, "names", &f, err));
    for (int i = 0; i < n; i++) {
        fprintf(f, "%.9g\t%.9g\t", front[i]->memory_bytes, front[i]->images_per_s);
        hp_canvas_text(f, hp_text_clean(arena, hp_arena_printf(arena, "%d: %s", i + 1, front[i]->strategy)));
        fputc('\n', f);
    }
    return hp_canvas_data_end(f, err);
}

typedef struct extent {
    double min_bytes, max_bytes, max_rate;
    int n_name;
    bool by_hours;
    double min_hours, max_hours; /* range on the front, if it has hours */
} extent;

static void extend(extent *e, const hp_plot_source *s) {
    for (int i = 0; i < s->n_candidate; i++) {
        const hp_plot_candidate *c = &s->candidate[i];
        if (!is_feasible(c)) continue;
        e->min_bytes = fmin(e->min_bytes, c->memory_bytes);
        e->max_bytes = fmax(e->max_bytes, c->memory_bytes);
        e->max_rate = fmax(e->max_rate, c->images_per_s);
    }
}

static hp_status render(hp_canvas *c, int n_series, const extent *e, hp_error *err) {
    hp_canvas_number(c, "n_series", n_series);
    hp_canvas_number(c, "min_bytes", e->min_bytes);
    hp_canvas_number(c, "max_bytes", e->max_bytes);
    hp_canvas_number(c, "max_rate", e->max_rate);
    hp_canvas_number(c, "n_name", e->n_name);
    hp_canvas_number(c, "by_hours", e->by_hours);
    if (e->by_hours) hp_canvas_number(c, "min_hours", e->min_hours);
    if (e->by_hours) hp_canvas_number(c, "max_hours", e->max_hours);
    return hp_canvas_render(c, script, err);
}

hp_status hp_plot_pareto(hp_arena *arena, const hp_plot_source *s, int n, hp_canvas *c, hp_error *err) {
    extent e = {.min_bytes = INFINITY, .min_hours = INFINITY};
    int n_series = 0;
    for (int i = 0; i < n; i++) {
        const hp_plot_candidate **front = HP_NEW(arena, const hp_plot_candidate *, s[i].n_candidate + 1);
        const int on_it = hp_plot_front(arena, &s[i], front);
        if (!on_it) continue;
        HP_TRY(write_all(c, n_series, &s[i], err));
        HP_TRY(write_front(c, n_series++, series_name(arena, &s[i], n), front, on_it, err));
        e.by_hours = n == 1 && has_counts(front, on_it);
        if (e.by_hours) HP_TRY(write_hours(c, front, on_it, err));
        for (int k = 0; k < on_it; k++) {
            e.min_hours = fmin(e.min_hours, hours_of(front[k]));
            e.max_hours = fmax(e.max_hours, hours_of(front[k]));
        }
        if (n == 1 && on_it <= MOST_NAMES) e.n_name = on_it;
        if (e.n_name) HP_TRY(write_names(arena, c, front, on_it, err));
        extend(&e, &s[i]);
    }
    if (n_series == 0)
        return hp_fail(err, HP_EDATA,
                       "%s: holds no candidates; make some with `hplan simulate --all --out plan.db`",
                       s->path);
    HP_TRY(hp_canvas_title(
        c, n == 1 ? hp_plot_heading(arena, s, "throughput against memory") : "throughput against memory",
        err));
    return render(c, n_series, &e, err);
}
