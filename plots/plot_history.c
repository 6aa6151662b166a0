/* plot_history.c - predicted against measured steps: one point per run of the history, logarithmic, with the
 * prediction's interval. Points on the diagonal were predicted exactly. */
#include "plots/plots.h"

#include <math.h>

/* columns: measured, predicted, low, high, measured at equal speed (NaN: unknown) */
static const char script[] =
    "set title picture_title noenhanced\n"
    "set logscale xy\n"
    "set xrange [low:high]\n"
    "set yrange [low:high]\n"
    "set size ratio -1\n"
    "set xlabel 'measured step (median)'\n"
    "set ylabel 'predicted step'\n"
    "set format xy '%.0s %cs'\n"
    "if (!is_dumb && height < 500 && high > 1e4 * low) { set xtics low, 100 }\n" /* room for their numbers */
    "set key inside top left reverse Left samplen 1.5\n"
    "if (!is_dumb) { set key tmargin left horizontal maxcols (width < 800 ? 1 : 2) }\n"
    "if (is_dumb) {\n"
    "  set size noratio\n"
    "  plot x with lines title 'exact', 'runs' using 1:2 with points pt 'o' title 'as measured', \\\n"
    "    'runs' using 5:2 with points pt '*' title 'at equal machine speed'\n"
    "} else {\n"
    "  set style fill solid 1.0 noborder\n"
    "  plot '+' using 1:($1 / 1.1):($1 * 1.1) with filledcurves lc rgb '#cccccc' title 'within 10%', \\\n"
    "    x with lines lc rgb '#444444' lw 1.5 title 'exact', \\\n"
    "    'runs' using 1:2:3:4 with yerrorbars pt 7 ps 0.6 lc rgb '#0072B2' title 'as measured', \\\n"
    "    'runs' using 5:2 with points pt 6 ps 0.9 lc rgb '#D55E00' title 'at equal machine speed'\n"
    "}\n";

static void widen(double v, double *low, double *high) {
    if (!(v > 0)) return;
    *low = fmin(*low, v);
    *high = fmax(*high, v);
}

static void write_run(FILE *f, const hp_ledger_entry *e, double *low, double *high) {
    const bool interval = e->low_s > 0 && e->high_s > 0;
    fprintf(f, "%.9g\t%.9g\t%.9g\t%.9g\t", e->measured_s, e->predicted_s,
            interval ? e->low_s : e->predicted_s, interval ? e->high_s : e->predicted_s);
    fprintf(f, e->equal_speed_s > 0 ? "%.9g\n" : "NaN\n", e->equal_speed_s);
    const double all[] = {e->measured_s, e->predicted_s, e->low_s, e->high_s, e->equal_speed_s};
    for (int i = 0; i < 5; i++) widen(all[i], low, high);
}

hp_status hp_plot_history(const hp_ledger_entry *e, const bool *use, int n, const char *line, hp_canvas *c,
                          hp_error *err) {
    FILE *f = NULL;
    double low = INFINITY, high = 0;
    HP_TRY(hp_canvas_data(c, "runs", &f, err));
    for (int i = 0; i < n; i++)
        if (use[i]) write_run(f, &e[i], &low, &high);
    HP_TRY(hp_canvas_data_end(f, err));
    if (high <= 0)
        return hp_fail(
            err, HP_EDATA,
            "the history has no run on this processor that was predicted with a calibration of it; "
            "`hplan calibrate`, then `hplan run`");
    HP_TRY(hp_canvas_title(c, line, err));
    hp_canvas_number(c, "low", pow(10, floor(log10(low))));
    hp_canvas_number(c, "high", pow(10, ceil(log10(high) + 1e-9)));
    return hp_canvas_render(c, script, err);
}
