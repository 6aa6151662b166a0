/* plot_precision.c - the gain of lower precision: throughput, memory and latency of `hplan bench`'s series.
 * Precisions are side by side, in groups of one network at one image size. */
#include "plots/plots.h"
#include "traces/trace_text.h"

#include <math.h>
#include <string.h>

/* Known precisions, with the same colour in every picture (Okabe and Ito 2008). */
static const char *const PRECISIONS[] = {"fp32", "tf32", "bf16",         "fp16",
                                         "fp8",  "int8", "int8-dynamic", "int4"};
enum { N_PRECISION = sizeof PRECISIONS / sizeof *PRECISIONS, MOST_GROUPS = 64 };

static const char script[] =
    "prec_name = 'fp32 tf32 bf16 fp16 fp8 int8 int8-dynamic int4'\n"
    "prec_color = '#0072B2 #999999 #56B4E9 #009E73 #CC79A7 #E69F00 #F0E442 #D55E00'\n"
    "prec(i) = int(word(prec_list, i + 1))\n"
    "name(i) = word(prec_name, prec(i) + 1)\n"
    "mark(i) = int(word('7 13 5 9 11 6 4 8', prec(i) + 1))\n"
    "larger(a, b) = a > b ? a : b\n"
    "stretch(v, a, b) = larger(larger(v, valid(4) ? a : v), valid(5) ? b : v)\n"
    "show_ratio = is_dumb || 30 * n_group * n_prec < width / 2 - 90\n"
    "color(i) = word(prec_color, prec(i) + 1)\n"
    "width_of = 0.8 / n_prec\n"
    "place(g, i) = g + (i - (n_prec - 1) / 2.0) * width_of\n"
    "ratio(r) = r >= 1 ? sprintf('%.1fx', r) : r > 0 ? sprintf('%.2fx', r) : ''\n"
    "is_small = !is_dumb && height < 600\n" /* no room for long words beside the axes */
    "label_rate = is_small ? 'images/s' : rate_label\n"
    "label_memory = is_small ? 'peak memory' : 'peak memory (dash: whole process)'\n"
    "label_single = is_small ? 'latency of 1' : 'latency of 1 image: p50, p90, p99'\n"
    "label_multi = is_small ? 'latency of 8' : 'latency of 8 images: p50, p90, p99'\n"
    "format_rate = '%g'\n"
    "format_memory = '%.1s %cB'\n"
    "format_single = '%.0s %cs'\n"
    "format_multi = '%.0s %cs'\n"
    "panels = is_dumb ? 'rate memory' : 'rate memory single multi'\n" /* a terminal has room for two panels */
    "set style fill solid 1.0 noborder\n"
    "set style textbox opaque noborder margins 0.2, 0.2\n"
    "set boxwidth width_of\n"
    "set bars 0\n"
    "if (!is_dumb) { set lmargin 11; set rmargin 2 }\n"
    "set xrange [-0.6 : n_group - 0.4]\n"
    "set xtics nomirror out scale 0\n"
    "if (long_labels || is_small) { set xtics rotate by 20 right }\n"
    "if (is_small) { set xtics font ',8'; set ytics font ',9'; set key font ',9' }\n"
    "set key outside top center horizontal samplen 1.2\n"
    "if (is_dumb || n_panel < 3) {\n"
    "  set multiplot layout (is_dumb ? 2 : n_panel), 1 title picture_title noenhanced\n"
    "} else {\n"
    "  set multiplot layout 2, 2 title picture_title noenhanced\n"
    "}\n"
    "do for [panel in panels] {\n"
    "  high = value('high_'.panel)\n"
    "  low = value('low_'.panel)\n"
    "  if (high > 0) {\n"
    "    unset logscale y\n"
    "    bottom = 0\n"
    "    top = 1.18 * high\n"
    "    if (high > 25 * low) { set logscale y; bottom = low / 2; top = 3 * high }\n"
    "    if (bottom == 0) { set ytics nice(top / (is_small ? 3 : 6)) } else { set ytics autofreq }\n"
    "    set yrange [bottom : top]\n"
    "    set format y value('format_'.panel)\n"
    "    if (is_dumb) { set title value('label_'.panel) } else { set ylabel value('label_'.panel) }\n"
    /* a bar's length means nothing on a logarithmic axis: there values are points */
    "    is_log = bottom > 0\n"
    "    plot 'groups' using 1:(NaN):xtic(2) with points notitle, \\\n"
    "      for [i = 0:n_prec-1] panel using ($2 == i && !is_log ? place($1, i) : NaN):3 with boxes lc rgb "
    "color(i) title (is_log ? '' : name(i)), \\\n"
    "      panel using (is_log ? place($1, $2) : NaN):3:3:(stretch($3, $4, $5)) with yerrorbars pt 0 lw 1 lc "
    "rgb "
    "'#888888' notitle, \\\n"
    "      for [i = 0:n_prec-1] panel using ($2 == i && is_log ? place($1, i) : NaN):3 with points pt "
    "mark(i) ps 1.1 lc rgb color(i) title (is_log ? name(i) : ''), \\\n"
    "      panel using (place($1, $2)):3:(show_ratio ? ratio($6) : '') with labels boxed font ',9' offset 0, "
    "0.8 "
    "notitle, \\\n"
    "      for [k = 4:5] panel using (place($1, $2)):k:(0.36 * width_of) with xerrorbars pt 0 lw 1.5 lc rgb "
    "'#222222' notitle\n"
    "  }\n"
    "}\n"
    "unset multiplot\n";

typedef struct group { /* one network at one image size */
    const hp_bench_series *first;
} group;

typedef struct chart {
    int n_series, n_group;
    const hp_bench_series **series; /* series of all files */
    group group[MOST_GROUPS];
    int n_prec, prec[N_PRECISION]; /* precisions that occur, in the order of PRECISIONS */
    int32_t rate_scenario;         /* scenario of throughput and memory */
} chart;

static int precision_of(const char *name) {
    int i = 0;
    while (i < N_PRECISION && strcmp(PRECISIONS[i], name) != 0) i++;
    return i;
}

static int group_of(const chart *c, const hp_bench_series *s) {
    int g = 0;
    while (g < c->n_group) {
        const hp_bench_series *f = c->group[g].first;
        if (!strcmp(f->net, s->net) && f->image_h == s->image_h && f->image_w == s->image_w) break;
        g++;
    }
    return g;
}

/* The newest series of that kind: a later file, or a later series of a file, replaces an
 * earlier measurement. */
static const hp_bench_series *find_series(const chart *c, int g, int prec, int32_t scenario) {
    for (int i = c->n_series - 1; i >= 0; i--)
        if (group_of(c, c->series[i]) == g && precision_of(c->series[i]->prec) == prec &&
            c->series[i]->scenario == scenario)
            return c->series[i];
    return NULL;
}

/* The scenario for throughput: offline if measured, otherwise that of the largest batches. */
static int32_t best_scenario(const chart *c) {
    int32_t best = HP_SINGLE_STREAM;
    for (int i = 0; i < c->n_series; i++)
        if (c->series[i]->scenario > best) best = c->series[i]->scenario;
    return best;
}

static hp_status gather(hp_arena *arena, const hp_plot_source *s, int n, chart *c, hp_error *err) {
    bool seen[N_PRECISION + 1] = {false};
    for (int i = 0; i < n; i++) c->n_series += s[i].n_bench;
    if (!c->n_series)
        return hp_fail(err, HP_EDATA,
                       "%s: holds no series; make some with `hplan bench --image 256,512,1024`", s->path);
    c->series = HP_NEW(arena, const hp_bench_series *, c->n_series);
    for (int i = 0, k = 0; i < n; i++)
        for (int b = 0; b < s[i].n_bench; b++) c->series[k++] = &s[i].bench[b];
    for (int i = 0; i < c->n_series; i++) {
        const hp_bench_series *one = c->series[i];
        if (precision_of(one->prec) == N_PRECISION)
            return hp_fail(err, HP_EDATA, "a series of the unknown precision '%.40s'", one->prec);
        seen[precision_of(one->prec)] = true;
        if (group_of(c, one) < c->n_group) continue;
        if (c->n_group == MOST_GROUPS)
            return hp_fail(err, HP_EDATA, "more than %d networks and image sizes: give fewer files",
                           MOST_GROUPS);
        c->group[c->n_group++] = (group){one};
    }
    for (int p = 0; p < N_PRECISION; p++)
        if (seen[p]) c->prec[c->n_prec++] = p;
    c->rate_scenario = best_scenario(c);
    return HP_OK;
}

/* --- panels --- */

/* A bar, two marks and a ratio; NaN: absent. */
typedef struct bar {
    double value, mark[2], ratio;
} bar;

static bar rate_bar(const hp_bench_series *s, const hp_bench_series *base) {
    bar b = {hp_bench_median(s).images_per_s, {NAN, NAN}, NAN};
    if (base && base != s) b.ratio = b.value / hp_bench_median(base).images_per_s;
    return b;
}

static bar memory_bar(const hp_bench_series *s, const hp_bench_series *base) {
    bar b = {(double)s->peak_bytes, {(double)s->rss_bytes, NAN}, NAN};
    if (base && base != s) b.ratio = (double)base->peak_bytes / b.value;
    return b;
}

static bar latency_bar(const hp_bench_series *s, const hp_bench_series *base) {
    (void)base;
    const hp_serving m = hp_bench_median(s);
    return (bar){m.p50_s, {m.p90_s, m.p99_s}, NAN};
}

typedef struct panel {
    const char *name;
    int32_t scenario; /* HP_SCENARIOS: the throughput's */
    bar (*make)(const hp_bench_series *s, const hp_bench_series *base);
} panel;

static const panel PANELS[] = {{"rate", HP_SCENARIOS, rate_bar},
                               {"memory", HP_SCENARIOS, memory_bar},
                               {"single", HP_SINGLE_STREAM, latency_bar},
                               {"multi", HP_MULTI_STREAM, latency_bar}};
enum { N_PANEL = sizeof PANELS / sizeof *PANELS };

static void write_bar(FILE *f, int g, int slot, const bar *b) {
    fprintf(f, "%d\t%d\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\n", g, slot, b->value, b->mark[0], b->mark[1], b->ratio,
            fmax(b->value, b->mark[0])); /* fmax ignores NaN */
}

static void set_extent(hp_canvas *c, const char *name, double low, double high) {
    char variable[32];
    snprintf(variable, sizeof variable, "low_%s", name);
    hp_canvas_number(c, variable, high > 0 ? low : 1);
    snprintf(variable, sizeof variable, "high_%s", name);
    hp_canvas_number(c, variable, high);
}

/* *any: the panel has data. */
static hp_status write_panel(const chart *k, const panel *p, hp_canvas *c, bool *any, hp_error *err) {
    const int32_t scenario = p->scenario == HP_SCENARIOS ? k->rate_scenario : p->scenario;
    double low = INFINITY, high = 0;
    FILE *f = NULL;
    HP_TRY(hp_canvas_data(c, p->name, &f, err));
    for (int g = 0; g < k->n_group; g++)
        for (int i = 0; i < k->n_prec; i++) {
            const hp_bench_series *s = find_series(k, g, k->prec[i], scenario),
                                  *base = find_series(k, g, 0, scenario);
            if (!s) continue;
            const bar b = p->make(s, base);
            write_bar(f, g, i, &b);
            low = fmin(low, b.value);
            high = fmax(high, fmax(b.value, fmax(b.mark[0], b.mark[1]))); /* fmax ignores NaN */
        }
    set_extent(c, p->name, low, high);
    *any = high > 0;
    return hp_canvas_data_end(f, err);
}

/* --- labels --- */

static bool one_net(const chart *k) {
    for (int g = 1; g < k->n_group; g++)
        if (strcmp(k->group[g].first->net, k->group[0].first->net) != 0) return false;
    return true;
}

static bool one_size(const chart *k) {
    const hp_bench_series *a = k->group[0].first;
    for (int g = 1; g < k->n_group; g++) {
        const hp_bench_series *b = k->group[g].first;
        if (a->image_h != b->image_h || a->image_w != b->image_w) return false;
    }
    return true;
}

static const char *size_text(hp_arena *arena, const hp_bench_series *s) {
    return s->image_h == s->image_w ? hp_arena_printf(arena, "%d\u00b2", s->image_h)
                                    : hp_arena_printf(arena, "%dx%d", s->image_h, s->image_w);
}

/* Writes the properties in which groups differ; common ones are in the title. */
static hp_status write_groups(hp_arena *arena, const chart *k, hp_canvas *c, hp_error *err) {
    FILE *f = NULL;
    size_t letters = 0;
    HP_TRY(hp_canvas_data(c, "groups", &f, err));
    for (int g = 0; g < k->n_group; g++) {
        const hp_bench_series *s = k->group[g].first;
        const char *size = size_text(arena, s);
        const char *label = one_net(k)    ? size
                            : one_size(k) ? s->net
                                          : hp_arena_printf(arena, "%.40s %s", s->net, size);
        letters += strlen(label);
        fprintf(f, "%d\t", g);
        hp_canvas_text(f, hp_text_clean(arena, label));
        fputc('\n', f);
    }
    static const size_t ONE_LINE = 54; /* characters that fit into half the picture's width */
    hp_canvas_number(c, "long_labels", letters > ONE_LINE);
    return hp_canvas_data_end(f, err);
}

static hp_status write_title(hp_arena *arena, const chart *k, hp_canvas *c, hp_error *err) {
    const hp_bench_series *s = k->group[0].first;
    const char *net = one_net(k) ? s->net : "networks";
    const char *what = one_size(k) ? hp_arena_printf(arena, "%.60s %s by precision", net, size_text(arena, s))
                                   : hp_arena_printf(arena, "%.60s by precision and image size", net);
    const char *text = hp_arena_printf(arena, "%s   %.100s, %d thread%s, %.60s (%.30s)", what, s->strategy,
                                       s->threads, s->threads == 1 ? "" : "s", s->machine, s->device);
    return hp_canvas_title(c, hp_text_clean(arena, text), err);
}

/* Writes the slots of the precisions that occur: "0 5" are fp32 and int8. */
static void write_precisions(const chart *k, hp_canvas *c) {
    fputs("prec_list = '", c->script);
    for (int i = 0; i < k->n_prec; i++) fprintf(c->script, " %d", k->prec[i]);
    fputs("'\n", c->script);
    hp_canvas_number(c, "n_prec", k->n_prec);
}

hp_status hp_plot_precision(hp_arena *arena, const hp_plot_source *s, int n, hp_canvas *c, hp_error *err) {
    static const char *const RATE_LABELS[HP_SCENARIOS] = {"rate_label = 'images/s, one at a time'\n",
                                                          "rate_label = 'images/s, 8 at a time'\n",
                                                          "rate_label = 'images/s, offline'\n"};
    chart *k = HP_NEW(arena, chart, 1);
    int n_panel = 0;
    HP_TRY(gather(arena, s, n, k, err));
    HP_TRY(write_groups(arena, k, c, err));
    for (int p = 0; p < N_PANEL; p++) {
        bool any = false;
        HP_TRY(write_panel(k, &PANELS[p], c, &any, err));
        n_panel += any;
    }
    HP_TRY(write_title(arena, k, c, err));
    write_precisions(k, c);
    hp_canvas_number(c, "n_panel", n_panel);
    hp_canvas_number(c, "n_group", k->n_group);
    fputs(RATE_LABELS[k->rate_scenario], c->script);
    return hp_canvas_render(c, script, err);
}
