/* plot_memory.c - planned bytes of every rank by what they are for, observed ones and what a rank has; below,
 * memory over the step. Before any run: the candidates' peaks. */
#include "plots/plots.h"
#include "traces/trace_text.h"

#include <math.h>

enum { TOP = 12, LINES = 8 };

static const char script[] =
    "set style fill solid 1.0 border lc rgb '#ffffff'\n"
    "set format y '%.0s %cB'\n"
    "set yrange [0:*]\n"
    "set grid y nox\n"
    "set lmargin 11\n"
    "set rmargin width < 800 ? 24 : 27\n"
    "set key at screen 1, graph 1 top vertical maxcols 1 invert reverse Left samplen 1.5\n"
    "if (height < 500) { set key font ',9' spacing 0.8 }\n"
    "if (most > 0) { set ytics nice(most / (height < 500 ? 3 : 6)) }\n"
    "if (is_dumb) { set rmargin 2; set key outside top right horizontal }\n"
    "color(i) = word('#0072B2 #D55E00 #009E73 #E69F00 #CC79A7 #56B4E9 #999999 #000000', i % 8 + 1)\n"
    "set multiplot layout n_panel, 1 title picture_title noenhanced\n"
    "if (has_ranks) {\n"
    "  set ylabel 'peak memory'\n"
    "  set xlabel 'rank'\n"
    "  set xrange [-0.5 : n_rank - 0.5]\n"
    "  set xtics 0, tic_step, n_rank\n"
    "  if (n_rank == 1) { set xtics ('0' 0) }\n"
    "  half = n_rank > 32 ? 0.5 : 0.3\n"
    "  if (n_rank > 32) { set style fill solid 1.0 noborder }\n"
    "  set boxwidth 2 * half\n"
    "  if (near_capacity) { set yrange [0 : 1.08 * capacity] }\n"
    "  roof = capacity > 0 ? gprintf('a rank has %.1s %cB', capacity) : ''\n"
    "  plot 'ranks' using 1:(has_parts ? NaN : $2) with boxes lc rgb '#56B4E9' title (has_parts ? '' : "
    "'planned'), "
    "\\\n"
    "    for [i = 0:n_part-1] sprintf('part%d', i) using 1:(($2 + $3) / 2):($1 - half):($1 + half):2:3 with "
    "boxxyerror "
    "lc rgb word('#0072B2 #56B4E9 #009E73 #E69F00 #CC79A7 #F0E442 #DDDDDD', i % 7 + 1) title "
    "columnheader(4), \\\n"
    "    'ranks' using 1:($3 * has_peak):(1.2 * half) with xerrorbars pt 0 lw 3 lc rgb '#000000' title "
    "(has_peak ? 'observed' "
    ": ''), \\\n"
    "    near_capacity ? capacity : NaN with lines dt 2 lw 1.5 lc rgb '#000000' \\\n"
    "      title (near_capacity ? roof : ''), \\\n"
    "    keyentry with points pt 0 lc rgb '#ffffff' title (near_capacity ? '' : roof)\n"
    "  unset xtics\n"
    "  set xtics autofreq nomirror out\n"
    "  set yrange [0:*]\n"
    "}\n"
    "if (has_time) {\n"
    "  set ylabel 'memory in use'\n"
    "  set xlabel 'time from the start of the step, ms'\n"
    "  set xrange [0 : end_ms]\n"
    /* a thick line under thinner ones: where ranks are alike, all of them are seen; none hides the curve */
    "  wider = n_line > 4 ? 4.5 / (n_line - 1) : 1.5\n"
    "  plot for [k = 1:n_line] 'time' using ($1 == n_line - k ? $2 : NaN):3 with steps lw 1.5 + wider * "
    "(n_line - k) "
    "lc rgb color(n_line - k) title sprintf('rank %d', n_line - k)\n"
    "}\n"
    "if (has_candidates) {\n"
    "  unset ylabel\n"
    "  unset lmargin\n"
    "  set rmargin 4\n"
    "  set ytics autofreq\n"
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

/* A file for each part: its boxes, each above those of the parts before. */
static hp_status write_part(hp_canvas *c, const hp_plot_source *s, int name, double *below, hp_error *err) {
    char file[32];
    FILE *f = NULL;
    snprintf(file, sizeof file, "part%d", name);
    HP_TRY(hp_canvas_data(c, file, &f, err));
    fputs("rank\tlow\thigh\t", f);
    hp_canvas_text(f, s->parts.name[name]);
    fputc('\n', f);
    for (int i = 0; i < s->parts.n; i++) {
        const hp_plot_part *p = &s->parts.at[i];
        if (p->name != name) continue;
        fprintf(f, "%d\t%.9g\t%.9g\t\n", p->rank, below[p->rank], below[p->rank] + p->bytes);
        below[p->rank] += p->bytes;
    }
    return hp_canvas_data_end(f, err);
}

static hp_status write_parts(hp_arena *arena, hp_canvas *c, const hp_plot_source *s, int ranks,
                             hp_error *err) {
    for (int i = 0; i < s->parts.n; i++)
        if (s->parts.at[i].rank >= ranks) ranks = s->parts.at[i].rank + 1;
    double *below = HP_NEW(arena, double, ranks + 1);
    const int n = c->format == HP_CANVAS_DUMB || !s->parts.n ? 0 : s->parts.n_name;
    for (int k = 0; k < n; k++) HP_TRY(write_part(c, s, k, below, err));
    hp_canvas_number(c, "n_part", n);
    hp_canvas_number(c, "has_parts", n > 0);
    return HP_OK;
}

static double most_of(const double *v, int n) {
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, v[i]); /* ignores NaN */
    return most;
}

static hp_status write_ranks(hp_arena *arena, hp_canvas *c, const hp_plot_source *s, hp_error *err) {
    static const double NEAR = 5; /* times as much as is used: a line of it would flatten the bars */
    const int planned_ranks = count_ranks(s->planned, s->n_planned),
              peak_ranks = count_ranks(s->peak, s->n_peak);
    const int ranks = planned_ranks > peak_ranks ? planned_ranks : peak_ranks;
    const double *planned = by_rank(arena, s->planned, s->n_planned, ranks),
                 *peak = by_rank(arena, s->peak, s->n_peak, ranks);
    const double most = fmax(most_of(planned, ranks), most_of(peak, ranks));
    FILE *f = NULL;
    HP_TRY(hp_canvas_data(c, "ranks", &f, err));
    for (int r = 0; r < ranks; r++) fprintf(f, "%d\t%.9g\t%.9g\n", r, planned[r], peak[r]);
    hp_canvas_number(c, "has_ranks", ranks > 0);
    hp_canvas_number(c, "n_rank", ranks);
    hp_canvas_number(c, "most", most);
    hp_canvas_number(c, "tic_step", ranks > 32 ? 8 : 1);
    hp_canvas_number(c, "has_peak", s->n_peak > 0);
    hp_canvas_number(c, "capacity", isfinite(s->parts.capacity_bytes) ? s->parts.capacity_bytes : 0);
    hp_canvas_number(c, "near_capacity",
                     s->parts.capacity_bytes > 0 && s->parts.capacity_bytes < NEAR * most);
    HP_TRY(hp_canvas_data_end(f, err));
    return write_parts(arena, c, s, ranks, err);
}

/* Start and end of the step that the values are of: the trace's, widened to hold them all. */
static void step_of(const hp_trace *t, bool present, const hp_trace_value *v, int64_t n, int64_t *t0_ns,
                    int64_t *t1_ns) {
    *t0_ns = INT64_MAX;
    *t1_ns = INT64_MIN;
    for (int i = 0; present && n && i < t->n_iter; i++)
        if (t->iter[i].iter == v[0].iter) *t0_ns = t->iter[i].t0_ns, *t1_ns = t->iter[i].t1_ns;
    for (int64_t i = 0; i < n && v[i].iter == v[0].iter; i++) {
        if (v[i].t_ns < *t0_ns) *t0_ns = v[i].t_ns;
        if (v[i].t_ns > *t1_ns) *t1_ns = v[i].t_ns;
    }
}

/* Memory over the first recorded step, to its end: simulated if available, otherwise executed. */
static hp_status write_time(hp_canvas *c, const hp_plot_source *s, bool *any, hp_error *err) {
    const int side = s->n_memory[0] ? 0 : 1;
    const hp_trace_value *v = s->memory[side];
    double last[LINES] = {0};
    int64_t t0, t1;
    step_of(side ? &s->exec : &s->sim, side ? s->has_exec : s->has_sim, v, s->n_memory[side], &t0, &t1);
    FILE *f = NULL;
    HP_TRY(hp_canvas_data(c, "time", &f, err));
    for (int64_t i = 0; i < s->n_memory[side] && v[i].iter == v[0].iter; i++) {
        if (v[i].rank < 0 || v[i].rank >= LINES) continue;
        last[v[i].rank] = v[i].value;
        fprintf(f, "%d\t%.9g\t%.9g\n", v[i].rank, ((double)v[i].t_ns - (double)t0) * 1e-6, v[i].value);
    }
    const int ranks = count_ranks(v, s->n_memory[side]), lines = ranks < LINES ? ranks : LINES;
    const double end_ms = ((double)t1 - (double)t0) * 1e-6;
    *any = s->n_memory[side] > 1;
    for (int r = 0; *any && r < lines; r++) fprintf(f, "%d\t%.9g\t%.9g\n", r, end_ms, last[r]);
    hp_canvas_number(c, "has_time", *any);
    hp_canvas_number(c, "end_ms", *any && end_ms > 0 ? end_ms : 1);
    hp_canvas_number(c, "n_line", lines);
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
