/* plot_error.c - predicted against measured time, one point per task, logarithmic; points on the diagonal
 * were predicted exactly. */
#include "plots/plots.h"

#include <math.h>

static const char script[] =
    "set title picture_title noenhanced\n"
    "set logscale xy\n"
    "set xrange [low:high]\n"
    "set yrange [low:high]\n"
    "set size ratio -1\n"
    "set xlabel 'measured time of the task (median over steps)'\n"
    "set ylabel 'predicted time of the task'\n"
    "set format xy '%.0s %cs'\n"
    "if (!is_dumb && height < 500 && high > 1e4 * low) { set xtics low, 100 }\n" /* room for their numbers */
    "set key inside top left reverse Left samplen 1.5\n"
    "name(i) = int(used / 2 ** i) % 2 == 1 ? word(phase_name, i + 1) : ''\n"
    "letter(i) = word('L P F B O t r', i + 1)\n"
    "mark(i) = int(word('4 6 7 5 9 13 11', i + 1))\n"
    "if (!is_dumb) { set key tmargin left horizontal maxcols (width < 800 ? 4 : 6) }\n"
    "if (is_dumb) {\n"
    "  set size noratio\n"
    "  plot x with lines title 'exact', for [i = 0:6] 'tasks' using ($3 == i ? $1 : NaN):2 with points pt "
    "letter(i) title name(i)\n"
    "} else {\n"
    "  set style fill solid 1.0 noborder\n"
    "  plot '+' using 1:($1 / 1.1):($1 * 1.1) with filledcurves lc rgb '#cccccc' title 'within 10%', \\\n"
    "    x with lines lc rgb '#444444' lw 1.5 title 'exact', \\\n"
    "    for [i = 0:6] 'tasks' using ($3 == i ? $1 : NaN):2 with points pt mark(i) ps 0.6 lc rgb "
    "word(phase_color, "
    "i + 1) notitle, \\\n"
    "    for [i = 0:6] keyentry with points pt mark(i) ps 0.9 lc rgb word(phase_color, i + 1) title name(i)\n"
    "}\n";

/* Seconds per task of the program: the medians' mean over its ranks; 0: not recorded. */
static double *task_seconds(hp_arena *arena, const hp_trace *t) {
    int64_t n = 0;
    const hp_trace_median *m = hp_trace_medians(arena, t, &n);
    double *s = HP_NEW(arena, double, t->n_task);
    for (int64_t i = 0; i < n; i++) s[m[i].task] += m[i].seconds / t->role_ranks[t->task[m[i].task].role];
    return s;
}

static hp_status write_tasks(hp_canvas *c, const hp_trace *t, const double *predicted, const double *measured,
                             double *low, double *high, hp_error *err) {
    FILE *f = NULL;
    unsigned used = 0; /* bit i: phase i occurs and appears in the legend */
    HP_TRY(hp_canvas_data(c, "tasks", &f, err));
    for (int i = 0; i < t->n_task; i++) {
        if (predicted[i] <= 0 || measured[i] <= 0) continue; /* cannot be drawn on a logarithmic axis */
        fprintf(f, "%.9g\t%.9g\t%d\n", measured[i], predicted[i], t->task[i].phase);
        used |= 1u << t->task[i].phase;
        *low = fmin(*low, fmin(predicted[i], measured[i]));
        *high = fmax(*high, fmax(predicted[i], measured[i]));
    }
    fprintf(c->script, "used = %u\n", used);
    return hp_canvas_data_end(f, err);
}

hp_status hp_plot_error(hp_arena *arena, const hp_plot_source *s, int n, hp_canvas *c, hp_error *err) {
    HP_ASSERT(n == 1);
    const bool both = s->has_sim && s->has_exec && s->sim.n_iter && s->exec.n_iter;
    if (!both)
        return hp_fail(err, HP_EDATA, "%s: needs a prediction and a run of it; `hplan run` records both",
                       s->path);
    if (s->sim.n_task != s->exec.n_task)
        return hp_fail(err, HP_EDATA,
                       "%s: the prediction and the run are of different plans; run the plan again", s->path);
    hp_trace exec = s->exec;
    hp_trace_drop_warmup(&exec);
    double low = INFINITY, high = 0;
    HP_TRY(write_tasks(c, &exec, task_seconds(arena, &s->sim), task_seconds(arena, &exec), &low, &high, err));
    if (high <= 0)
        return hp_fail(err, HP_EDATA, "%s: no task with both a predicted and a measured time", s->path);
    HP_TRY(hp_canvas_title(c, hp_plot_caption(arena, s), err));
    hp_canvas_number(c, "low", pow(10, floor(log10(low))));
    hp_canvas_number(c, "high", pow(10, ceil(log10(high) + 1e-9)));
    fputs(hp_plot_phases, c->script);
    return hp_canvas_render(c, script, err);
}
