/* plot_size.c - time of a step and memory against the size of a sample, one line per strategy: plans of one
 * network for several lengths of text or image sizes. Where lines cross, the best strategy changes. */
#include "plots/plots.h"
#include "traces/trace_text.h"

#include <math.h>
#include <string.h>

static const char script[] =
    "set multiplot layout 2, 1 title picture_title noenhanced\n"
    "set logscale x 2\n"
    "set logscale y\n"
    "set xrange [min_size / 1.25 : max_size * 1.25]\n"
    "do for [d = -3:12] { set ytics add (sprintf('%g', 2 * 10.0 ** d) 2 * 10.0 ** d, sprintf('%g', 5 * 10.0 "
    "** d) 5 * 10.0 ** d) }\n"
    "if (!is_dumb) { set lmargin 11; set rmargin (width < 800 ? 38 : 36) }\n"
    "set key at screen 1, graph 1 top vertical maxcols 1 reverse Left samplen 2\n"
    "if (is_dumb) { set key top left reverse Left }\n"
    "if (!is_dumb) { set key font ',10' spacing 0.8 }\n"
    "if (height < 700 || width < 800) { set key font ',8' spacing 0.8 }\n"
    "color(i) = word('#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #999999 #000000', i % 8 + 1)\n"
    "mark(i) = int(word('7 5 9 11 13 6 4 8 10 12', i % 10 + 1))\n"
    "file(i) = sprintf('series%d', i)\n"
    "set ylabel 'ms a step'\n"
    "plot for [i = 0:n_series-1] file(i) using 1:2:3:4:xtic(1) with yerrorlines lc rgb color(i) lw 1.5 pt "
    "mark(i) ps "
    "0.9 title columnheader(6)\n"
    "unset key\n"
    "set xlabel (is_text ? 'tokens' : 'pixels of a side')\n"
    "set ylabel (is_dumb || height >= 700 ? 'memory of the fullest rank' : 'memory')\n"
    "set format y '%.0s %cB'\n"
    "set ytics autofreq\n"
    "do for [d = 4:13] {\n"
    "  do for [k in '2 5'] { set ytics add (gprintf('%.0s %cB', k * 10.0 ** d) k * 10.0 ** d) }\n"
    "}\n"
    "plot for [i = 0:n_series-1] file(i) using 1:5:xtic(1) with linespoints lc rgb color(i) lw 1.5 pt "
    "mark(i) ps "
    "0.9\n"
    "unset multiplot\n";

typedef struct point {
    double size;
    const hp_plot_candidate *c;
} point;

/* For an image: the side of the square with as many pixels. */
static double size_of(const hp_plot_source *s) {
    return s->width == 1 ? s->height : sqrt((double)s->height * s->width);
}

static int compare_sizes(const void *a, const void *b) {
    const double x = ((const point *)a)->size, y = ((const point *)b)->size;
    return (x > y) - (x < y);
}

/* Collects what all plans tell about a strategy, by size. */
static int points_of(const hp_plot_source *s, int n, const char *strategy, point *out) {
    int k = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < s[i].n_candidate; j++) {
            const hp_plot_candidate *c = &s[i].candidate[j];
            if (c->step_s > 0 && isfinite(c->step_s) && strcmp(c->strategy, strategy) == 0)
                out[k++] = (point){size_of(&s[i]), c};
        }
    qsort(out, (size_t)k, sizeof *out, compare_sizes);
    return k;
}

static hp_status write_series(hp_canvas *c, int index, const char *name, const point *p, int n,
                              hp_error *err) {
    char file[32];
    FILE *f = NULL;
    snprintf(file, sizeof file, "series%d", index);
    HP_TRY(hp_canvas_data(c, file, &f, err));
    fputs("size\tms\tlow\thigh\tbytes\t", f);
    hp_canvas_text(f, name);
    fputc('\n', f);
    for (int i = 0; i < n; i++) {
        const hp_plot_candidate *k = p[i].c;
        fprintf(f, "%.9g\t%.9g\t%.9g\t%.9g\t%.9g\n", p[i].size, 1e3 * k->step_s,
                1e3 * (k->step_low_s > 0 ? k->step_low_s : k->step_s),
                1e3 * (k->step_high_s > 0 ? k->step_high_s : k->step_s), k->memory_bytes);
    }
    return hp_canvas_data_end(f, err);
}

/* The distinct strategies of all plans, in the order of their first occurrence; at most `most`. */
static int strategies_of(const hp_plot_source *s, int n, const char **out, int most) {
    int k = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < s[i].n_candidate && k < most; j++) {
            const char *name = s[i].candidate[j].strategy;
            int at = 0;
            while (at < k && strcmp(out[at], name) != 0) at++;
            if (at == k) out[k++] = name;
        }
    return k;
}

hp_status hp_plot_size(hp_arena *arena, const hp_plot_source *s, int n, hp_canvas *c, hp_error *err) {
    enum { MOST = 16, LETTERS = 38 }; /* of a name in the key, beside the panels */
    const char *strategy[MOST];
    const int n_series = strategies_of(s, n, strategy, MOST);
    double least = INFINITY, most = 0;
    int room = 0;
    for (int i = 0; i < n; i++) {
        room += s[i].n_candidate;
        if (!s[i].n_candidate || s[i].height <= 0 || s[i].width <= 0)
            return hp_fail(err, HP_EDATA,
                           "%s: holds no candidates; make some with `hplan simulate --out plan.db`",
                           s[i].path);
        if ((s[i].width == 1) != (s->width == 1))
            return hp_fail(err, HP_EDATA, "%s and %s: one is of text, the other of images", s->path,
                           s[i].path);
        least = fmin(least, size_of(&s[i]));
        most = fmax(most, size_of(&s[i]));
    }
    if (least == most)
        return hp_fail(err, HP_EDATA,
                       "%s: of one size; plans of several make lines: hplan plot size small.db large.db",
                       s->path);
    point *p = HP_NEW(arena, point, room);
    for (int i = 0; i < n_series; i++) {
        const int m = points_of(s, n, strategy[i], p);
        const char *name = hp_arena_printf(arena, "%.*s%s", LETTERS, strategy[i],
                                           strlen(strategy[i]) > LETTERS ? "..." : "");
        HP_TRY(write_series(c, i, hp_text_clean(arena, name), p, m, err));
    }
    hp_plot_source any = *s; /* sizes are the axis */
    any.height = any.width = 0;
    HP_TRY(hp_canvas_title(c, hp_plot_heading(arena, &any, "a step by the size of a sample"), err));
    hp_canvas_number(c, "n_series", n_series);
    hp_canvas_number(c, "is_text", s->width == 1);
    hp_canvas_number(c, "min_size", least);
    hp_canvas_number(c, "max_size", most);
    return hp_canvas_render(c, script, err);
}
