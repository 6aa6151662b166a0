/* plot_timeline.c - one step of every rank, coloured by phase, with the prediction above the measurement.
 *
 * Each rank is a row: compute in the upper half, transfers and reductions in the lower half. A thin line
 * before one of these is the wait until all participants have begun. Spans of one phase that would touch in
 * the picture are merged into one box, so that the file does not grow with the number of tasks. */
#include "plots/plots.h"

#include <math.h>
#include <string.h>

enum { MAX_ROWS = 64, PIXELS = 2000, WAITING = HP_PHASES };

static const char script[] =
    "set xrange [0 : 1.01 * x_max]\n"
    "set ylabel 'rank'\n"
    "set style fill solid 1.0 noborder\n"
    "if (!is_dumb) { set grid x noy }\n"
    "set lmargin 8\n"
    "letter(i) = word('L P F B O t r .', i + 1)\n"
    "phase_name = phase_name.' waiting'\n"
    "phase_color = phase_color.' #BBBBBB'\n"
    "is_used(i) = int(used / 2 ** i) % 2 == 1\n"
    "name(i) = is_used(i) ? word(phase_name, i + 1) : ''\n"
    "unit_name = word('ns us ms s', unit + 1)\n"
    "unset key\n"
    "if (is_dumb) { set rmargin 2; set lmargin 5 } else { set rmargin 16 }\n"
    "set multiplot layout n_panel, 1 title picture_title noenhanced\n"
    "do for [panel = 1:2] {\n"
    "  if ((panel == 1 && !has_sim) || (panel == 2 && !has_exec)) { continue }\n"
    "  file = panel == 1 ? 'sim' : 'exec'\n"
    "  rows = panel == 1 ? row_sim : row_exec\n"
    "  set yrange [rows - 0.5 : -0.5]\n"
    "  unset ytics\n"
    "  set ytics nomirror out\n"
    "  set ytics ('0' 0)\n"
    "  do for [row = 1:rows - 1] {\n"
    "    if (row % (rows > 16 ? 8 : 1) == 0) { set ytics add (sprintf('%d', row * stride) row) }\n"
    "  }\n"
    "  if (panel == 1) {\n"
    "    folded = row_exec > row_sim && !is_dumb ? ' (one replica stands for all)' : ''\n"
    "    set title sprintf('predicted: %.4g %s%s', step_sim, unit_name, folded) noenhanced offset 0, -0.6\n"
    "  } else {\n"
    "    set title sprintf('measured: %.4g %s (step %d of the run, the one of median length)', step_exec, "
    "unit_name, "
    "iter_exec) noenhanced offset 0, -0.6\n"
    "  }\n"
    "  if (!is_dumb) {\n"
    "    unset key\n"
    "    if (panel == 1 || !has_sim) {\n"
    "      set key at screen 1, graph 1 top vertical maxcols 1 reverse Left samplen 1.2\n"
    "      if (height < 500) { set key font ',9' spacing 0.75 }\n"
    "    }\n"
    "  }\n"
    "  if (panel == 2 || !has_exec) {\n"
    "    set xlabel sprintf('time from the start of the step, %s', unit_name)\n"
    "    if (is_dumb) { set key outside bottom center horizontal reverse Left samplen 1.5 width 2 }\n"
    "  }\n"
    "  order = '7 0 1 2 3 4 5 6'\n" /* waits are drawn below transfers */
    "  if (is_dumb) {\n"
    "    plot for [i in order] file.'.grid' using ($3 == int(i) ? $1 : NaN):2 with points pt letter(int(i)) "
    "title "
    "name(int(i))\n"
    "  } else {\n"
    "    plot for [i in order] file using ($5 == int(i) ? ($1 + $2) / 2 : NaN):(($3 + $4) / 2):1:2:3:4 with "
    "boxxyerror lc rgb word(phase_color, int(i) + 1) notitle, \\\n"
    "      for [i = 0:7] keyentry with boxes lc rgb word(phase_color, i + 1) title name(i), \\\n"
    "      keyentry with points pt 0 lc rgb '#ffffff' title 'white: idle'\n"
    "  }\n"
    "}\n"
    "unset multiplot\n";

const hp_trace_iter *hp_plot_typical_iter(hp_arena *arena, const hp_trace *t) {
    const double median = hp_median(hp_trace_steps(arena, t), t->n_iter);
    const hp_trace_iter *best = &t->iter[0];
    for (int i = 1; i < t->n_iter; i++)
        if (fabs(t->iter[i].step_s - median) < fabs(best->step_s - median)) best = &t->iter[i];
    return best;
}

typedef struct box {
    int rank, lower, phase;
    double x0, x1; /* seconds from the start of the step */
} box;

static int compare_boxes(const void *a, const void *b) {
    const box *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->lower != y->lower) return x->lower < y->lower ? -1 : 1;
    if (x->phase != y->phase) return x->phase < y->phase ? -1 : 1;
    return (x->x0 > y->x0) - (x->x0 < y->x0);
}

/* Makes the boxes of an iteration; merges spans less than `gap` apart. Returns their number. */
static int64_t make_boxes(hp_arena *arena, const hp_trace *t, const hp_trace_iter *it, double gap,
                          box **out) {
    const int64_t *met = hp_trace_met(arena, t, it);
    box *b = HP_NEW(arena, box, 2 * (it->last - it->first));
    int64_t n = 0, m = 0;
    for (int64_t i = it->first; i < it->last; i++) {
        const hp_trace_span *s = &t->span[i];
        const hp_trace_task *k = &t->task[s->task];
        const double x0 = (double)(s->t0_ns - it->t0_ns) * 1e-9, x1 = (double)(s->t1_ns - it->t0_ns) * 1e-9,
                     moves = (double)(met[i - it->first] - it->t0_ns) * 1e-9;
        const int lower = k->queue != HP_QUEUE_COMPUTE;
        if (moves > x0) b[n++] = (box){s->rank, lower, WAITING, x0, moves};
        b[n++] = (box){s->rank, lower, k->phase, moves, x1};
    }
    qsort(b, (size_t)n, sizeof *b, compare_boxes);
    for (int64_t i = 0; i < n; i++) {
        box *last = m ? &b[m - 1] : NULL;
        const bool same =
            last && last->rank == b[i].rank && last->lower == b[i].lower && last->phase == b[i].phase;
        if (same && b[i].x0 - last->x1 < gap)
            last->x1 = fmax(last->x1, b[i].x1);
        else
            b[m++] = b[i];
    }
    *out = b;
    return m;
}

static hp_status write_boxes(hp_canvas *c, const char *name, const box *b, int64_t n, int stride,
                             double scale, hp_error *err) {
    FILE *f = NULL;
    HP_TRY(hp_canvas_data(c, name, &f, err));
    for (int64_t i = 0; i < n; i++) {
        if (b[i].rank % stride) continue;
        const int row = b[i].rank / stride;
        const bool waits = b[i].phase == WAITING;
        fprintf(f, "%.9g\t%.9g\t%.9g\t%.9g\t%d\n", b[i].x0 * scale, b[i].x1 * scale,
                row + (waits        ? 0.28
                       : b[i].lower ? 0.17
                                    : -0.42),
                row + (waits        ? 0.31
                       : b[i].lower ? 0.42
                                    : 0.13),
                b[i].phase);
    }
    return hp_canvas_data_end(f, err);
}

/* For a terminal: the phase of a row at each of COLUMNS times. */
enum { COLUMNS = 120 };
static hp_status write_grid(hp_canvas *c, const char *name, const box *b, int64_t n, int stride, double scale,
                            double x_max, hp_error *err) {
    FILE *f = NULL;
    HP_TRY(hp_canvas_data(c, name, &f, err));
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < COLUMNS && b[i].rank % stride == 0; k++) {
            const double x = (k + 0.5) / COLUMNS * x_max;
            if (x < b[i].x0 * scale || x > b[i].x1 * scale) continue;
            const int row = b[i].rank / stride;
            fprintf(f, "%.9g\t%.9g\t%d\n", x, row + (b[i].lower ? 0.25 : -0.15), b[i].phase);
        }
    fputs("-1\t-1\t0\n", f); /* the file must not be empty */
    return hp_canvas_data_end(f, err);
}

static hp_status write_trace(hp_arena *arena, hp_canvas *c, const hp_trace *t, const hp_trace_iter *it,
                             bool sim, int stride, double scale, double longest, hp_error *err) {
    box *b = NULL;
    const int64_t n = make_boxes(arena, t, it, longest / PIXELS, &b);
    HP_TRY(write_boxes(c, sim ? "sim" : "exec", b, n, stride, scale, err));
    return write_grid(c, sim ? "sim.grid" : "exec.grid", b, n, stride, scale, longest * scale, err);
}

static double extent(const hp_trace_iter *it) {
    return it ? (double)(it->t1_ns - it->t0_ns) * 1e-9 : 0;
}

/* 0: ns, 1: us, 2: ms, 3: s; chosen so that the axis ends between 1 and 1000. */
static int choose_unit(double seconds) {
    int unit = 0;
    while (unit < 3 && seconds * 1e9 >= 1000 * pow(1000, unit)) unit++;
    return unit;
}

/* Bit i: phase i occurs and appears in the legend. */
static unsigned used_phases(const hp_trace *t) {
    unsigned used = 0;
    for (int i = 0; i < t->n_task; i++)
        used |= 1u << t->task[i].phase | (t->task[i].meeting >= 0 ? 1u << WAITING : 0);
    return used;
}

typedef struct panel {
    const hp_trace *t;
    const hp_trace_iter *it; /* NULL: the side does not exist */
    int rows;                /* drawn */
} panel;

static panel make_panel(hp_arena *arena, const hp_trace *t, bool present, int ranks, int stride) {
    if (!present || t->n_iter == 0) return (panel){t, NULL, 0};
    return (panel){t, hp_plot_typical_iter(arena, t), (ranks + stride - 1) / stride};
}

static void write_numbers(hp_canvas *c, const panel *sim, const panel *exec, int unit, int stride) {
    const double scale = 1e9 / pow(1000, unit);
    hp_canvas_number(c, "has_sim", sim->it != NULL);
    hp_canvas_number(c, "has_exec", exec->it != NULL);
    hp_canvas_number(c, "n_panel", (sim->it != NULL) + (exec->it != NULL));
    hp_canvas_number(c, "row_sim", sim->rows);
    hp_canvas_number(c, "row_exec", exec->rows);
    hp_canvas_number(c, "unit", unit);
    hp_canvas_number(c, "stride", stride);
    hp_canvas_number(c, "step_sim", sim->it ? sim->it->step_s * scale : 0);
    hp_canvas_number(c, "step_exec", exec->it ? exec->it->step_s * scale : 0);
    hp_canvas_number(c, "iter_exec", exec->it ? exec->it->iter + 1 : 0);
    hp_canvas_number(c, "x_max", fmax(extent(sim->it), extent(exec->it)) * scale);
    fprintf(c->script, "used = %u\n",
            (sim->it ? used_phases(sim->t) : 0) | (exec->it ? used_phases(exec->t) : 0));
    fputs(hp_plot_phases, c->script);
}

hp_status hp_plot_timeline(hp_arena *arena, const hp_plot_source *s, int n, hp_canvas *c, hp_error *err) {
    HP_ASSERT(n == 1);
    const int ranks = s->has_exec ? s->exec.ranks : s->has_sim ? s->sim.n_rank : 1;
    const int stride = (ranks + MAX_ROWS - 1) / MAX_ROWS;
    const panel sim = make_panel(arena, &s->sim, s->has_sim, s->sim.n_rank, stride);
    const panel exec = make_panel(arena, &s->exec, s->has_exec, ranks, stride);
    const double longest = fmax(extent(sim.it), extent(exec.it));
    if (longest <= 0)
        return hp_fail(err, HP_EDATA,
                       "%s: no complete step is recorded; make one with `hplan simulate` or `hplan run`",
                       s->path);
    const int unit = choose_unit(longest);
    const double scale = 1e9 / pow(1000, unit);
    if (sim.it) HP_TRY(write_trace(arena, c, &s->sim, sim.it, true, stride, scale, longest, err));
    if (exec.it) HP_TRY(write_trace(arena, c, &s->exec, exec.it, false, stride, scale, longest, err));
    const char *note = stride > 1 ? hp_arena_printf(arena, "  (one rank in %d)", stride) : "";
    HP_TRY(hp_canvas_title(c, hp_arena_printf(arena, "%s%s", hp_plot_caption(arena, s), note), err));
    write_numbers(c, &sim, &exec, unit, stride);
    return hp_canvas_render(c, script, err);
}
