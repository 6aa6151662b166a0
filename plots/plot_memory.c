/* plot_memory.c - planned and observed bytes of every rank; below, memory over the step. Before any run: the
 * candidates' peaks. */
#include "plots/plots.h"
#include "traces/trace_text.h"

#include <math.h>

enum { TOP = 12 };

static const char script[] =
    "set style fill solid 1.0 noborder\n"
    "set format y '%.1s %cB'\n"
    "set yrange [0:*]\n"
    "set key outside top right horizontal reverse Left samplen 1.5\n"
    "set multiplot layout n_panel, 1 title picture_title noenhanced\n"
    "if (has_ranks) {\n"
    "  set ylabel 'peak memory'\n"
    "  set xlabel 'rank'\n"
    "  set xrange [-0.5 : n_rank - 0.5]\n"
    "  set xtics 0, tic_step, n_rank\n"
    "  if (n_rank == 1) { set xtics ('0' 0) }\n"
    "  set boxwidth has_peak ? 0.38 : 0.6\n"
    "  shift = has_peak ? 0.2 : 0\n"
    "  if (has_peak) {\n"
    "    plot 'ranks' using ($1 - shift):2 with boxes lc rgb '#56B4E9' title 'planned', \\\n"
    "      'ranks' using ($1 + shift):3 with boxes lc rgb '#E69F00' title 'observed'\n"
    "  } else {\n"
    "    plot 'ranks' using 1:2 with boxes lc rgb '#56B4E9' title 'planned'\n"
    "  }\n"
    "  unset xtics\n"
    "  set xtics autofreq nomirror out\n"
    "  set xrange [*:*]\n"
    "}\n"
    "if (has_time) {\n"
    "  set ylabel 'memory in use'\n"
    "  set xlabel 'time from the start, ms'\n"
    "  set key outside top right horizontal\n"
    "  plot for [r = 0:n_line-1] 'time' using ($1 == r ? $2 : NaN):3 with steps lw 1.5 title sprintf('rank "
    "%d', r)\n"
    "}\n"
    "if (has_candidates) {\n"
    "  unset ylabel\n"
    "  set format y '%s'\n"
    "  set format x '%.1s %cB'\n"
    "  set xrange [0:*]\n"
    "  set yrange [n_candidate - 0.5 : -0.5]\n"
    "  set xlabel 'planned peak memory of the fullest rank'\n"
    "  unset key\n"
    "  set style fill solid 1.0\n"
    "  set boxwidth 0.6\n"
    "  plot 'candidates' using ($2 / 2):1:(0):2:($1 - 0.3):($1 + 0.3):ytic(3) with boxxyerror lc rgb "
    "'#56B4E9'\n"
    "}\n"
    "unset multiplot\n";

/* Largest value per rank; NaN: none. */
static double *by_rank(hp_arena *arena, const hp_trace_value *v, int64_t n, int ranks) {
    double *out = HP_NEW(arena, double, ranks);
    for (int r = 0; r < ranks; r++) out[r] = NAN;
    for (int64_t i = 0; i < n; i++)
        if (v[i].rank >= 0 && v[i].rank < ranks) out[v[i].rank] = fmax(out[v[i].rank], v[i].value);
    return out;
}

static int count_ranks(const hp_trace_value *v, int64_t n) {
    int ranks = 0;
    for (int64_t i = 0; i < n; i++)
        if (v[i].rank >= ranks && v[i].rank < 1 << 20) ranks = v[i].rank + 1;
    return ranks;
}

static hp_status write_ranks(hp_arena *arena, hp_canvas *c, const hp_plot_source *s, hp_error *err) {
    const int planned_ranks = count_ranks(s->planned, s->n_planned),
              peak_ranks = count_ranks(s->peak, s->n_peak);
    const int ranks = planned_ranks > peak_ranks ? planned_ranks : peak_ranks;
    const double *planned = by_rank(arena, s->planned, s->n_planned, ranks),
                 *peak = by_rank(arena, s->peak, s->n_peak, ranks);
    FILE *f = NULL;
    HP_TRY(hp_canvas_data(c, "ranks", &f, err));
    for (int r = 0; r < ranks; r++) fprintf(f, "%d\t%.9g\t%.9g\n", r, planned[r], peak[r]);
    hp_canvas_number(c, "has_ranks", ranks > 0);
    hp_canvas_number(c, "n_rank", ranks);
    hp_canvas_number(c, "tic_step", ranks > 32 ? 8 : 1);
    hp_canvas_number(c, "has_peak", s->n_peak > 0);
    return hp_canvas_data_end(f, err);
}

/* Memory over the first recorded step: simulated if available, otherwise executed. */
enum { LINES = 8 };
static hp_status write_time(hp_canvas *c, const hp_plot_source *s, bool *any, hp_error *err) {
    const int side = s->n_memory[0] ? 0 : 1;
    const hp_trace_value *v = s->memory[side];
    int64_t base_ns = INT64_MAX;
    for (int64_t i = 0; i < s->n_memory[side] && v[i].iter == v[0].iter; i++)
        if (v[i].t_ns < base_ns) base_ns = v[i].t_ns;
    FILE *f = NULL;
    HP_TRY(hp_canvas_data(c, "time", &f, err));
    for (int64_t i = 0; i < s->n_memory[side] && v[i].iter == v[0].iter; i++)
        if (v[i].rank < LINES)
            fprintf(f, "%d\t%.9g\t%.9g\n", v[i].rank, ((double)v[i].t_ns - (double)base_ns) * 1e-6,
                    v[i].value);
    const int ranks = count_ranks(v, s->n_memory[side]);
    *any = s->n_memory[side] > 1;
    hp_canvas_number(c, "has_time", *any);
    hp_canvas_number(c, "n_line", ranks < LINES ? ranks : LINES);
    return hp_canvas_data_end(f, err);
}

static hp_status write_candidates(hp_arena *arena, hp_canvas *c, const hp_plot_source *s, hp_error *err) {
    FILE *f = NULL;
    HP_TRY(hp_canvas_data(c, "candidates", &f, err));
    const int n = s->n_candidate < TOP ? s->n_candidate : TOP;
    for (int i = 0; i < n; i++) {
        fprintf(f, "%d\t%.9g\t", i, s->candidate[i].memory_bytes);
        hp_canvas_text(f, hp_text_clean(arena, hp_arena_printf(arena, "%.48s", s->candidate[i].strategy)));
        fputc('\n', f);
    }
    hp_canvas_number(c, "n_candidate", n);
    return hp_canvas_data_end(f, err);
}

hp_status hp_plot_memory(hp_arena *arena, const hp_plot_source *s, int n, hp_canvas *c, hp_error *err) {
    HP_ASSERT(n == 1);
    const bool ranks = s->n_planned > 0 || s->n_peak > 0;
    bool time = false;
    HP_TRY(write_time(c, s, &time, err));
    const bool candidates = !ranks && !time;
    if (candidates && s->n_candidate == 0)
        return hp_fail(err, HP_EDATA,
                       "%s: holds neither memory figures nor candidates; make it with `hplan simulate`",
                       s->path);
    HP_TRY(write_ranks(arena, c, s, err));
    HP_TRY(write_candidates(arena, c, s, err));
    hp_canvas_number(c, "has_candidates", candidates);
    hp_canvas_number(c, "n_panel", candidates ? 1 : ranks + time);
    const char *caption = hp_plot_caption(arena, s);
    HP_TRY(hp_canvas_title(
        c, candidates ? hp_plot_heading(arena, s, "memory of the best candidates") : caption, err));
    return hp_canvas_render(c, script, err);
}
