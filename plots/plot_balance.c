/* plot_balance.c - the result of each balancing method, relative to the best known, against tries and against
 * time spent in tries: the mean over all chains. */
#include "plots/plots.h"

#include <math.h>

static const char script[] =
    "set title picture_title noenhanced\n"
    "set logscale x\n"
    "set rmargin 4\n"
    "set yrange [0.98:most]\n"
    "set ylabel 'slowest stage against the best there is'\n"
    "set key outside right top Left reverse samplen 1.5\n"
    "set multiplot layout 1, 2 title picture_title noenhanced\n"
    "unset title\n"
    "unset key\n"
    "set xlabel 'configurations tried'\n"
    "plot for [m = 0:n_line-1] sprintf('tries%d', m) using 1:2 with steps lw 1.8 lc m%8+1 dt m/6+1\n"
    "set key inside right top samplen 1.5\n"
    "unset ylabel\n"
    "set xlabel 'time in configurations tried, in steps of the best'\n"
    "plot for [m = 0:n_line-1] sprintf('spent%d', m) using 1:2 with steps lw 1.8 lc m%8+1 dt m/6+1 title "
    "columnheader(3)\n"
    "unset multiplot\n";

enum { POINTS = 60 };

static double at(const hp_plot_balance_step *s, bool tries) {
    return tries ? s->tries : s->spent;
}

/* The best result after x tries, or after time x in steps of the best result; NaN before the first. */
static double found(const hp_plot_balance_line *l, int chain, bool tries, double x) {
    double ratio = NAN;
    for (int k = 0; k < l->n_step[chain]; k++)
        if (at(&l->step[chain][k], tries) <= x) ratio = l->step[chain][k].ratio;
    return ratio;
}

/* Mean over the chains on which it was tried; NaN until it has a result on all. */
static double mean_found(const hp_plot_balance_line *l, int n, bool tries, double x) {
    double sum = 0;
    int counted = 0;
    for (int i = 0; i < n; i++) {
        if (l->n_step[i] == 0) continue;
        sum += found(l, i, tries, x);
        counted++;
    }
    return counted ? sum / counted : NAN;
}

static double longest(const hp_plot_balance_line *l, int n, bool tries) {
    double most = 2;
    for (int i = 0; i < n; i++)
        if (l->n_step[i] > 0) most = fmax(most, at(&l->step[i][l->n_step[i] - 1], tries));
    return most;
}

static hp_status write_line(const hp_plot_balance_line *l, int n, bool tries, const char *name, hp_canvas *c,
                            double *most, hp_error *err) {
    FILE *f = NULL;
    HP_TRY(hp_canvas_data(c, name, &f, err));
    fprintf(f, "x\ty\t");
    hp_canvas_text(f, l->name);
    fprintf(f, "\n");
    const double end = longest(l, n, tries);
    for (int k = 0; k <= POINTS; k++) {
        const double x = pow(end, (double)k / POINTS), y = mean_found(l, n, tries, x);
        if (isnan(y)) continue;
        fprintf(f, "%.6g\t%.6g\t\n", x, y);
        *most = fmax(*most, y);
    }
    return hp_canvas_data_end(f, err);
}

hp_status hp_plot_balance(const hp_plot_balance_line *line, int n_line, int n, hp_canvas *c, hp_error *err) {
    static const char *const tries[] = {"tries0",  "tries1",  "tries2",  "tries3", "tries4",  "tries5",
                                        "tries6",  "tries7",  "tries8",  "tries9", "tries10", "tries11",
                                        "tries12", "tries13", "tries14", "tries15"};
    static const char *const spent[] = {"spent0",  "spent1",  "spent2",  "spent3", "spent4",  "spent5",
                                        "spent6",  "spent7",  "spent8",  "spent9", "spent10", "spent11",
                                        "spent12", "spent13", "spent14", "spent15"};
    double most = 1.1;
    if (n_line > 16) n_line = 16;
    for (int m = 0; m < n_line; m++) {
        HP_TRY(write_line(&line[m], n, true, tries[m], c, &most, err));
        HP_TRY(write_line(&line[m], n, false, spent[m], c, &most, err));
    }
    HP_TRY(hp_canvas_title(c, "balancing chains of layers over unlike devices", err));
    hp_canvas_number(c, "n_line", n_line);
    hp_canvas_number(c, "most", fmin(most, 2));
    return hp_canvas_render(c, script, err);
}
