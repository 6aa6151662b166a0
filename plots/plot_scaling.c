/* plot_scaling.c - images/s against the number of devices: one line per swept strategy, else the best of each
 * file; the ideal line from its first point. Measured runs, and other people's measurements, are points. */
#include "plots/plots.h"
#include "traces/trace_text.h"

#include <math.h>
#include <string.h>

static const char script[] =
    "set title picture_title noenhanced\n"
    "set logscale x 2\n"
    "set logscale y\n"
    "set xrange [min_gpus / 1.25 : max_gpus * 1.25]\n"
    "set yrange [min_rate / 1.5 : max_rate * 1.5]\n"
    "do for [d = -3:9] { set ytics add (sprintf('%g', 2 * 10.0 ** d) 2 * 10.0 ** d, sprintf('%g', 5 * 10.0 "
    "** d) 5 * 10.0 ** d) }\n"
    "set xlabel 'devices'\n"
    "set ylabel 'images/s'\n"
    "set key top left reverse Left samplen 2\n"
    "color(i) = word('#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #999999 #000000', i % 8 + 1)\n"
    "file(i) = sprintf('series%d', i)\n"
    "plot for [i = 0:n_series-1] file(i) using 1:5 with lines lc rgb color(i) lw 1 dt 3 notitle, \\\n"
    "  for [i = 0:n_series-1] file(i) using 1:2:3:4:xtic(1) with yerrorbars lc rgb color(i) lw 1.5 pt 7 ps "
    "0.7 notitle, \\\n"
    "  for [i = 0:n_series-1] file(i) using 1:2 with lines lc rgb color(i) lw 2 title columnheader(6), \\\n"
    "  for [i = 0:n_series-1] file(i) using 1:6 with points lc rgb color(i) pt 2 ps 1.5 lw 2 notitle, \\\n"
    "  n_run ? 'measured' : file(0) using 1:(n_run ? $2 : NaN) with points lc rgb '#000000' pt 2 ps 1.5 lw 2 "
    "notitle, "
    "\\\n"
    "  for [i = 0:n_others-1] sprintf('others%d', i) using 1:2 with points lc rgb '#000000' pt 4 + 2 * i ps "
    "1.5 lw "
    "2 title columnheader(3), \\\n"
    "  keyentry with lines lc rgb '#666666' dt 3 title 'ideal', \\\n"
    "  keyentry with points pt 2 ps 1.5 lw 2 lc rgb '#666666' title (any_measured ? 'measured' : '')\n";

typedef struct best {
    const hp_plot_candidate *c;
    double measured; /* images/s of the run with this strategy; NaN: none */
} best;

static int compare_gpus(const void *a, const void *b) {
    const hp_plot_candidate *x = ((const best *)a)->c, *y = ((const best *)b)->c;
    return (x->gpus > y->gpus) - (x->gpus < y->gpus);
}

/* images/s of the executed run if it ran this candidate, with the same batch. */
static double measured_rate(hp_arena *arena, const hp_plot_source *s, const hp_plot_candidate *c) {
    if (!s->has_exec || s->exec.n_iter == 0 || strcmp(s->exec.strategy, c->strategy) != 0) return NAN;
    hp_trace t = s->exec;
    hp_trace_drop_warmup(&t);
    return c->images_per_s * c->step_s / hp_median(hp_trace_steps(arena, &t), t.n_iter);
}

static bool is_of(const hp_plot_curve *curve, const hp_plot_candidate *c) {
    for (int i = 0; curve && i < curve->n; i++)
        if (strcmp(curve->strategy[i], c->strategy) == 0) return true;
    return !curve;
}

/* For each number of devices, finds a curve's candidate (NULL: of all candidates) with the most images/s, and
 * its measurement if there is one. */
static int best_by_gpus(hp_arena *arena, const hp_plot_source *s, const hp_plot_curve *curve, best *out) {
    int n = 0;
    for (int i = 0; i < s->n_candidate; i++) {
        const hp_plot_candidate *c = &s->candidate[i];
        const bool possible =
            c->gpus > 0 && c->step_s > 0 && isfinite(c->images_per_s) && c->images_per_s > 0;
        if (!possible || !is_of(curve, c)) continue;
        int k = 0;
        while (k < n && out[k].c->gpus != c->gpus) k++;
        if (k == n) out[n++] = (best){c, NAN};
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

static double ideal_rate(const best *first, const best *b) {
    return first->c->images_per_s * b->c->gpus / first->c->gpus;
}

static hp_status write_series(hp_canvas *c, int index, const char *name, const best *b, int n,
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
        write_number(f, k->step_high_s > 0 ? k->images_per_s * k->step_s / k->step_high_s : k->images_per_s);
        write_number(f, k->step_low_s > 0 ? k->images_per_s * k->step_s / k->step_low_s : k->images_per_s);
        write_number(f, ideal_rate(&b[0], &b[i]));
        write_number(f, b[i].measured);
        fputc('\n', f);
    }
    return hp_canvas_data_end(f, err);
}

/* Range of the axes. */
typedef struct extent {
    double min_gpus, max_gpus, min_rate, max_rate;
    bool any_measured;
} extent;

static void extend(extent *e, const best *first, const best *b) {
    e->min_gpus = fmin(e->min_gpus, b->c->gpus);
    e->max_gpus = fmax(e->max_gpus, b->c->gpus);
    e->min_rate = fmin(e->min_rate, fmin(b->c->images_per_s, b->measured)); /* fmin and fmax ignore NaN */
    e->max_rate = fmax(e->max_rate, fmax(ideal_rate(first, b), b->measured));
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
    for (int k = 0; k < n; k++) plans |= !s[k].has_exec && !s[k].n_point;
    return s[i].n_point || (plans && s[i].has_exec);
}

static hp_status add_series(drawing *d, const hp_plot_source *s, const hp_plot_curve *curve, hp_error *err) {
    best *b = HP_NEW(d->arena, best, s->n_candidate);
    const int m = best_by_gpus(d->arena, s, curve, b);
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
        best b = {&s->candidate[i], measured_rate(d->arena, s, &s->candidate[i])};
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
        if (!s[i].n_point && gives_points(s, n, i)) write_run(d, &s[i], f);
    return hp_canvas_data_end(f, err);
}

static hp_status add_others(drawing *d, const hp_plot_source *s, hp_error *err) {
    char file[32];
    FILE *f = NULL;
    snprintf(file, sizeof file, "others%d", d->n_others++);
    HP_TRY(hp_canvas_data(d->c, file, &f, err));
    fputs("gpus\timages\t", f);
    hp_canvas_text(f, hp_arena_printf(d->arena, "measured: %.100s", s->points_from));
    fputc('\n', f);
    for (int i = 0; i < s->n_point; i++) {
        const hp_plot_point *p = &s->point[i];
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
    hp_canvas_number(d->c, "any_measured", e->any_measured);
    return hp_canvas_render(d->c, script, err);
}

hp_status hp_plot_scaling(hp_arena *arena, const hp_plot_source *s, int n, hp_canvas *c, hp_error *err) {
    drawing d = {.arena = arena, .c = c, .e = {INFINITY, 0, INFINITY, 0, false}};
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
        if (s[i].n_point) HP_TRY(add_others(&d, &s[i], err));
    return render(&d, err);
}
