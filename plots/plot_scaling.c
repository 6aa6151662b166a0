/* plot_scaling.c - images/s against the number of devices: one line per swept strategy, else the best of each
 * file; the ideal line from its first point. Measured runs, and other people's measurements, are points. */
#include "plots/plots.h"
#include "traces/trace_text.h"

#include <math.h>
#include <string.h>

static const char script[] =
    "set logscale x 2\n"
    "set logscale y\n"
    "set xrange [min_gpus / 1.25 : max_gpus * 1.25]\n"
    "set yrange [min_rate / 1.5 : max_rate * 1.5]\n"
    "do for [d = -3:9] { set ytics add (sprintf('%g', 2 * 10.0 ** d) 2 * 10.0 ** d, sprintf('%g', 5 * 10.0 "
    "** d) 5 * 10.0 ** d) }\n"
    "set ylabel 'images/s'\n"
    "color(i) = word('#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #999999 #000000', i % 8 + 1)\n"
    "mark(i) = int(word('7 5 9 11 13', i % 5 + 1))\n"
    "beside(x, i) = x * 1.025 ** (i - (n_series - 1) / 2.0)\n" /* bars of several curves are all seen */
    "file(i) = sprintf('series%d', i)\n"
    "set title picture_title noenhanced\n"
    "if (is_dumb) {\n"
    "  set key top left reverse Left samplen 2\n"
    "} else {\n"
    "  set key tmargin left vertical maxrows 6 reverse Left samplen 2\n"
    "  set lmargin 12\n"
    "  set multiplot\n"
    "  set size 1, 0.7\n"
    "  set origin 0, 0.3\n"
    "}\n"
    "if (is_dumb) { set xlabel 'devices' }\n"
    "plot for [i = 0:n_series-1] file(i) using 1:5 with lines lc rgb '#d8d8d8' lw 6 notitle, \\\n"
    "  for [i = 0:n_series-1] file(i) using (beside($1, i)):2:3:4 with yerrorbars lc rgb color(i) lw 1.2 pt "
    "0 "
    "notitle, \\\n"
    "  for [i = 0:n_series-1] file(i) using 1:2:xtic(1) with linespoints lc rgb "
    "color(i) lw 2 "
    "pt mark(i) ps 0.8 title columnheader(6), \\\n"
    "  for [i = 0:n_series-1] file(i) using 1:6 with points lc rgb color(i) pt 2 ps 1.5 lw 2 notitle, \\\n"
    "  n_run ? 'measured' : file(0) using 1:(n_run ? $2 : NaN) with points lc rgb '#000000' pt 2 ps 1.5 lw 2 "
    "notitle, \\\n"
    "  for [i = 0:n_others-1] sprintf('others%d', i) using 1:2 with points lc rgb '#000000' pt 4 + 2 * i ps "
    "1.5 lw 2 title columnheader(3), \\\n"
    "  keyentry with lines lc rgb '#d8d8d8' lw 6 title 'ideal, of the first point', \\\n"
    "  keyentry with yerrorbars lc rgb '#444444' lw 1.2 pt 0 title 'low to high', \\\n"
    "  keyentry with points pt 2 ps 1.5 lw 2 lc rgb '#666666' title (any_measured ? 'measured' : '')\n"
    "if (!is_dumb) {\n"
    "  unset logscale y\n"
    "  unset key\n"
    "  unset title\n"
    "  set size 1, 0.32\n"
    "  set origin 0, 0\n"
    "  low = min_share > 0.85 ? 0.8 : min_share > 0.55 ? 0.5 : 0\n"
    "  high = max_share > 1 ? max_share : 1\n"
    "  set yrange [low : high + 0.1 * (high - low)]\n"
    "  set ytics autofreq nice((high - low) / (height < 500 ? 2 : 4))\n"
    "  set format y '%.2f'\n"
    "  set xlabel 'devices'\n"
    "  set ylabel 'of ideal'\n"
    "  plot 1 with lines lc rgb '#d8d8d8' lw 6, \\\n"
    "    for [i = 0:n_series-1] file(i) using 1:($2 / $5):xtic(1) with linespoints lc rgb color(i) lw 2 pt "
    "mark(i) ps "
    "0.8, \\\n"
    "    for [i = 0:n_series-1] file(i) using 1:($6 / $5) with points lc rgb color(i) pt 2 ps 1.5 lw 2\n"
    "  unset multiplot\n"
    "}\n";

static int compare_gpus(const void *a, const void *b) {
    const hp_plot_candidate *x = ((const hp_plot_best *)a)->c, *y = ((const hp_plot_best *)b)->c;
    return (x->gpus > y->gpus) - (x->gpus < y->gpus);
}

double hp_plot_measured_rate(hp_arena *arena, const hp_trace *exec, const hp_plot_candidate *c) {
    if (!exec || exec->n_iter == 0 || strcmp(exec->strategy, c->strategy) != 0) return NAN;
    hp_trace t = *exec;
    hp_trace_drop_warmup(&t);
    return c->images_per_s * c->step_s / hp_median(hp_trace_steps(arena, &t), t.n_iter);
}

static double measured_rate(hp_arena *arena, const hp_plot_source *s, const hp_plot_candidate *c) {
    return hp_plot_measured_rate(arena, s->has_exec ? &s->exec : NULL, c);
}

static bool is_of(const hp_plot_curve *curve, const hp_plot_candidate *c) {
    for (int i = 0; curve && i < curve->n; i++)
        if (strcmp(curve->strategy[i], c->strategy) == 0) return true;
    return !curve;
}

int hp_plot_best_by_gpus(hp_arena *arena, const hp_plot_source *s, const hp_plot_curve *curve,
                         hp_plot_best *out) {
    int n = 0;
    for (int i = 0; i < s->n_candidate; i++) {
        const hp_plot_candidate *c = &s->candidate[i];
        const bool possible =
            c->gpus > 0 && c->step_s > 0 && isfinite(c->images_per_s) && c->images_per_s > 0;
        if (!possible || !is_of(curve, c)) continue;
        int k = 0;
        while (k < n && out[k].c->gpus != c->gpus) k++;
        if (k == n) out[n++] = (hp_plot_best){c, NAN};
        if (c->images_per_s > out[k].c->images_per_s) out[k].c = c;
        const double rate = measured_rate(arena, s, c);
        if (!isnan(rate)) out[k].measured = rate;
    }
    qsort(out, (size_t)n, sizeof *out, compare_gpus);
    return n;
}

static const char *series_name(hp_arena *arena, const hp_plot_source *s, const hp_plot_curve *curve,
                               bool alone) {
    const char *slash = strrchr(s->path, '/'), *file = slash ? slash + 1 : s->path;
    if (alone) return curve ? curve->name : "predicted, best strategy";
    if (curve) return hp_text_clean(arena, hp_arena_printf(arena, "%.80s (%.100s)", curve->name, file));
    return hp_text_clean(arena, hp_arena_printf(arena, "%.60s (%.100s)", s->net, file));
}

static void write_number(FILE *f, double v) {
    if (isfinite(v) && v > 0)
        fprintf(f, "\t%.9g", v);
    else
        fputs("\tNaN", f);
}

static double ideal_rate(const hp_plot_best *first, const hp_plot_best *b) {
    return first->c->images_per_s * b->c->gpus / first->c->gpus;
}

/* images/s, if the step is `step_s` long; if that is not known, as predicted. */
static double rate_at(const hp_plot_candidate *c, double step_s) {
    return step_s > 0 ? c->images_per_s * c->step_s / step_s : c->images_per_s;
}

static hp_status write_series(hp_canvas *c, int index, const char *name, const hp_plot_best *b, int n,
                              hp_error *err) {
    char file[32];
    FILE *f = NULL;
    snprintf(file, sizeof file, "series%d", index);
    HP_TRY(hp_canvas_data(c, file, &f, err));
    fputs("gpus\timages\tlow\thigh\tideal\t", f);
    hp_canvas_text(f, name);
    fputc('\n', f);
    for (int i = 0; i < n; i++) {
        const hp_plot_candidate *k = b[i].c;
        fprintf(f, "%d", k->gpus);
        write_number(f, k->images_per_s);
        write_number(f, rate_at(k, k->step_high_s));
        write_number(f, rate_at(k, k->step_low_s));
        write_number(f, ideal_rate(&b[0], &b[i]));
        write_number(f, b[i].measured);
        fputc('\n', f);
    }
    return hp_canvas_data_end(f, err);
}

/* Range of the axes. */
typedef struct extent {
    double min_gpus, max_gpus, min_rate, max_rate, min_share, max_share; /* share: of the ideal */
    bool any_measured;
} extent;

static void extend(extent *e, const hp_plot_best *first, const hp_plot_best *b) {
    const hp_plot_candidate *c = b->c;
    e->min_gpus = fmin(e->min_gpus, c->gpus);
    e->max_gpus = fmax(e->max_gpus, c->gpus);
    /* fmin and fmax ignore NaN */
    e->min_rate = fmin(e->min_rate, fmin(rate_at(c, c->step_high_s), b->measured));
    e->max_rate = fmax(e->max_rate, fmax(rate_at(c, c->step_low_s), fmax(ideal_rate(first, b), b->measured)));
    e->min_share = fmin(e->min_share, fmin(c->images_per_s, b->measured) / ideal_rate(first, b));
    e->max_share = fmax(e->max_share, fmax(c->images_per_s, b->measured) / ideal_rate(first, b));
    e->any_measured = e->any_measured || !isnan(b->measured);
}

/* --- files --- */

/* What has been drawn so far. */
typedef struct drawing {
    hp_arena *arena;
    hp_canvas *c;
    int n_series, n_run, n_others;
    bool alone;                 /* only one file has curves */
    const hp_plot_source *plan; /* the last drawn */
    extent e;
} drawing;

/* A run next to plans is drawn as points; runs alone are drawn as plans with their measurements. */
static bool gives_points(const hp_plot_source *s, int n, int i) {
    bool plans = false;
    for (int k = 0; k < n; k++) plans |= !s[k].has_exec && !s[k].points.n;
    return s[i].points.n || (plans && s[i].has_exec);
}

static hp_status add_series(drawing *d, const hp_plot_source *s, const hp_plot_curve *curve, hp_error *err) {
    hp_plot_best *b = HP_NEW(d->arena, hp_plot_best, s->n_candidate);
    const int m = hp_plot_best_by_gpus(d->arena, s, curve, b);
    if (m == 0) return HP_OK;
    HP_TRY(write_series(d->c, d->n_series++, series_name(d->arena, s, curve, d->alone), b, m, err));
    for (int k = 0; k < m; k++) extend(&d->e, &b[0], &b[k]);
    d->plan = s;
    return HP_OK;
}

static hp_status add_curves(drawing *d, const hp_plot_source *s, hp_error *err) {
    if (!s->n_curve) return add_series(d, s, NULL, err);
    for (int i = 0; i < s->n_curve; i++) HP_TRY(add_series(d, s, &s->curve[i], err));
    return HP_OK;
}

static void write_run(drawing *d, const hp_plot_source *s, FILE *f) {
    for (int i = 0; i < s->n_candidate; i++) {
        hp_plot_best b = {&s->candidate[i], measured_rate(d->arena, s, &s->candidate[i])};
        if (isnan(b.measured) || b.c->gpus <= 0) continue;
        fprintf(f, "%d\t%.9g\n", b.c->gpus, b.measured);
        extend(&d->e, &b, &b);
        d->n_run++;
        return;
    }
}

static hp_status add_runs(drawing *d, const hp_plot_source *s, int n, hp_error *err) {
    FILE *f = NULL;
    HP_TRY(hp_canvas_data(d->c, "measured", &f, err));
    for (int i = 0; i < n; i++)
        if (!s[i].points.n && gives_points(s, n, i)) write_run(d, &s[i], f);
    return hp_canvas_data_end(f, err);
}

static hp_status add_others(drawing *d, const hp_plot_source *s, hp_error *err) {
    char file[32];
    FILE *f = NULL;
    const int room = d->c->columns > 32 ? d->c->columns - 20 : 20; /* of the key, in letters */
    snprintf(file, sizeof file, "others%d", d->n_others++);
    HP_TRY(hp_canvas_data(d->c, file, &f, err));
    fputs("gpus\timages\t", f);
    hp_canvas_text(f,
                   hp_text_clean(d->arena, hp_arena_printf(d->arena, "measured: %.*s%s", room, s->points.from,
                                                           (int)strlen(s->points.from) > room ? "..." : "")));
    fputc('\n', f);
    for (int i = 0; i < s->points.n; i++) {
        const hp_plot_point *p = &s->points.at[i];
        extent *e = &d->e;
        fprintf(f, "%.0f\t%.9g\t\n", p->gpus, p->images_per_s);
        e->min_gpus = fmin(e->min_gpus, p->gpus);
        e->max_gpus = fmax(e->max_gpus, p->gpus);
        e->min_rate = fmin(e->min_rate, p->images_per_s);
        e->max_rate = fmax(e->max_rate, p->images_per_s);
    }
    return hp_canvas_data_end(f, err);
}

static hp_status render(const drawing *d, hp_error *err) {
    const extent *e = &d->e;
    HP_TRY(hp_canvas_title(d->c,
                           d->alone ? hp_plot_heading(d->arena, d->plan, "throughput by number of devices")
                                    : "throughput by number of devices",
                           err));
    hp_canvas_number(d->c, "n_series", d->n_series);
    hp_canvas_number(d->c, "n_run", d->n_run);
    hp_canvas_number(d->c, "n_others", d->n_others);
    hp_canvas_number(d->c, "min_gpus", e->min_gpus);
    hp_canvas_number(d->c, "max_gpus", e->max_gpus);
    hp_canvas_number(d->c, "min_rate", e->min_rate);
    hp_canvas_number(d->c, "max_rate", e->max_rate);
    hp_canvas_number(d->c, "min_share", e->min_share);
    hp_canvas_number(d->c, "max_share", e->max_share);
    hp_canvas_number(d->c, "any_measured", e->any_measured);
    return hp_canvas_render(d->c, script, err);
}

hp_status hp_plot_scaling(hp_arena *arena, const hp_plot_source *s, int n, hp_canvas *c, hp_error *err) {
    drawing d = {
        .arena = arena, .c = c, .e = {.min_gpus = INFINITY, .min_rate = INFINITY, .min_share = INFINITY}};
    int n_plan = 0;
    for (int i = 0; i < n; i++) n_plan += !gives_points(s, n, i);
    d.alone = n_plan == 1;
    for (int i = 0; i < n; i++)
        if (!gives_points(s, n, i)) HP_TRY(add_curves(&d, &s[i], err));
    if (d.n_series == 0)
        return hp_fail(err, HP_EDATA,
                       "%s: holds no candidates; make some with `hplan simulate --gpus 1,2,4 --out plan.db`",
                       s->path);
    HP_TRY(add_runs(&d, s, n, err));
    for (int i = 0; i < n; i++)
        if (s[i].points.n) HP_TRY(add_others(&d, &s[i], err));
    return render(&d, err);
}
