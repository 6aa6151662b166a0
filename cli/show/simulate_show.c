/* simulate_show.c - shows the table of candidates within the terminal's width, and as JSON. */
#include "cli/options/simulate.h"

#include "plan/base/units.h"

#include <math.h>
#include <string.h>

/* --- table --- */

/* Predictions are shown with at most three significant digits. */
const char *simulate_number(double value, char out[32]) {
    if (!(value > 0)) return strcpy(out, "0");
    const double unit = pow(10, floor(log10(value)) - 2), rounded = round(value / unit) * unit;
    const double digits = 2 - floor(log10(rounded) + 1e-9);
    snprintf(out, 32, "%.*f", digits > 0 ? digits < 9 ? (int)digits : 9 : 0, rounded);
    return out;
}

typedef struct column {
    const char *title;
    int width;
    int drop; /* columns with 1 are dropped first when the table is too wide, 0: never */
    void (*text)(const hp_evaluation *e, char out[64]);
} column;

static void text_step(const hp_evaluation *e, char out[64]) {
    char n[32];
    snprintf(out, 64, "%s", simulate_number(e->figures.step_s * 1e3, n));
}

static void text_interval(const hp_evaluation *e, char out[64]) {
    char low[32], high[32];
    snprintf(out, 64, "(%.12s-%.12s)", simulate_number(e->figures.step_low_s * 1e3, low),
             simulate_number(e->figures.step_high_s * 1e3, high));
}

static void text_images(const hp_evaluation *e, char out[64]) {
    char n[32];
    snprintf(out, 64, "%s", simulate_number(e->figures.images_per_s, n));
}

static void text_memory(const hp_evaluation *e, char out[64]) {
    char n[32];
    snprintf(out, 64, "%s", hp_format_bytes((double)e->figures.memory_bytes, n));
}

static void text_bubble(const hp_evaluation *e, char out[64]) {
    snprintf(out, 64, "%.1f%%", 100 * e->figures.bubble);
}

static void text_comm(const hp_evaluation *e, char out[64]) {
    snprintf(out, 64, "%.1f%%", 100 * e->figures.exposed_comm);
}

static void text_measured(const hp_evaluation *e, char out[64]) {
    snprintf(out, 64, "%.0f%%", 100 * e->figures.measured_share);
}

/* The longer names of bound_by.h are truncated to the column. */
static void text_bound(const hp_evaluation *e, char out[64]) {
    static const char *const brief[][2] = {
        {"batch-norm statistics", "batch norm"}, {"stage transfers", "transfers"},
        {"gradient all-reduce", "gradients"},    {"pipeline bubble", "bubble"},
        {"end of the step", "step end"},         {"exchanges between branches", "branches"},
        {"halo and strips", "halo+strip"}};
    const char *name = e->bound_by ? e->bound_by : "";
    for (size_t i = 0; i < sizeof brief / sizeof *brief; i++)
        if (strcmp(name, brief[i][0]) == 0) name = brief[i][1];
    snprintf(out, 64, "%s", name);
}

static const column columns[] = {{"ms/step", 8, 0, text_step},  {"(low-high)", 14, 4, text_interval},
                                 {"img/s", 9, 0, text_images},  {"mem/rank", 9, 0, text_memory},
                                 {"bubble", 7, 3, text_bubble}, {"comm*", 7, 2, text_comm},
                                 {"meas", 5, 1, text_measured}, {"bound by", 11, 0, text_bound}};
enum { N_COLUMN = sizeof columns / sizeof columns[0], NUMBER_WIDTH = 4, GPUS_WIDTH = 6, MOST_DROP = 4 };

typedef struct layout {
    int strategy; /* width */
    int drop;     /* columns up to this are dropped */
    bool sweep;   /* several numbers of devices: show their column */
} layout;

static bool is_shown(const column *c, int drop) {
    return c->drop == 0 || c->drop > drop;
}

/* Drops columns, the least important first, until the longest strategy fits; if no column is left to drop,
 * the strategy is truncated. */
static layout choose_columns(const simulate_setup *s, const simulate_found *f) {
    layout l = {.strategy = 8, .sweep = s->n_count > 1};
    for (int i = 0; i < f->n; i++) {
        const int n = (int)strlen(f->list[i].figures.strategy);
        l.strategy = n > l.strategy ? n : l.strategy;
    }
    const int terminal = cli_is_terminal(stdout) ? cli_width() : 100, limit = terminal < 100 ? terminal : 100;
    for (;; l.drop++) {
        int width = NUMBER_WIDTH + (l.sweep ? GPUS_WIDTH : 0);
        for (int c = 0; c < N_COLUMN; c++) width += is_shown(&columns[c], l.drop) ? columns[c].width : 0;
        if (width + l.strategy <= limit) return l;
        if (l.drop < MOST_DROP) continue;
        l.strategy = limit - width > 16 ? limit - width : 16;
        return l;
    }
}

static void print_row(const layout *l, int number, const hp_evaluation *e) {
    const char *strategy = e->figures.strategy;
    const bool fits = (int)strlen(strategy) <= l->strategy;
    printf("%s%2d %-*.*s%s", e->figures.tie ? "~" : " ", number, fits ? l->strategy : 0,
           fits ? l->strategy : l->strategy - 2, strategy, fits ? "" : "..");
    if (l->sweep) printf("%*d", GPUS_WIDTH, e->figures.gpus);
    for (int c = 0; c < N_COLUMN; c++) {
        char text[64];
        if (!is_shown(&columns[c], l->drop)) continue;
        columns[c].text(e, text);
        printf("%*s", columns[c].width, text);
    }
    printf("\n");
}

static void print_table(const simulate_setup *s, const simulate_found *f) {
    const layout l = choose_columns(s, f);
    printf("\n  # %-*s", l.strategy, "strategy");
    if (l.sweep) printf("%*s", GPUS_WIDTH, "gpus");
    for (int c = 0; c < N_COLUMN; c++) {
        if (is_shown(&columns[c], l.drop)) printf("%*s", columns[c].width, columns[c].title);
    }
    printf("\n");
    for (int i = 0; i < f->n; i++) print_row(&l, i + 1, &f->list[i]);
    if (l.drop < 2)
        printf("  *exposed: waited for, not hidden%s\n",
               l.drop < 1 ? "; meas: share of the time that was measured" : "");
}

static void print_notes(const simulate_found *f) {
    const hp_candidate *best = &f->list[f->chosen].figures;
    int ties = 0;
    for (int i = f->chosen + 1; i < f->n && f->list[i].figures.tie; i++) ties++;
    if (ties) printf("  ~not distinguishable from the one above: the intervals overlap\n");
    printf("number %d: %s\n", f->chosen + 1, best->note);
    if (best->measured_share < 0.5)
        printf("note: only %.0f%% of its time rests on measurements, the rest on data sheets and guesses: "
               "hplan calibrate\n",
               100 * best->measured_share);
}

static void print_rejects(const simulate_found *f) {
    if (f->n_rejected) printf("nearest rejects:\n");
    for (int i = 0; i < f->n_rejected; i++) {
        const hp_rejected *r = &f->rejected[i];
        printf("  %-9s %4lld x, as %s\n", hp_reject_text(r->code), (long long)r->count, r->example);
        printf("            %s\n            fix: %s\n", r->limit, r->fix);
    }
}

static void print_header(const simulate_setup *s, const simulate_found *f) {
    char elapsed[32];
    simulate_print_device(s, f);
    printf("%s %dx%d, %d classes, %.3g M parameters, %s, batch %lld on %d device%s\n", s->net, s->image_h,
           s->image_w, s->classes, (double)hp_graph_param_count(s->graph) * 1e-6,
           s->mode == HP_MODE_TRAIN ? "train" : "infer", (long long)f->batch, f->gpus,
           f->gpus == 1 ? "" : "s");
    printf("searched %lld strateg%s in %s: %lld valid, %lld rejected", (long long)f->searched,
           f->searched == 1 ? "y" : "ies", hp_format_seconds(f->elapsed_s, elapsed), (long long)f->valid,
           (long long)(f->searched - f->valid - f->left_out));
    if (f->cut_off)
        printf("; %lld simulated, %lld cut off by bounds", (long long)f->simulated, (long long)f->cut_off);
    if (f->left_out) printf("; %lld left out (too many tasks to simulate)", (long long)f->left_out);
    printf("\n");
}

void simulate_print(const simulate_setup *s, const simulate_found *f) {
    print_header(s, f);
    if (f->n) {
        print_table(s, f);
        print_notes(f);
    }
    print_rejects(f);
}

/* --- JSON --- */

static json_t *candidate_json(const hp_evaluation *e, int rank) {
    const hp_candidate *c = &e->figures;
    json_t *memory = json_array();
    for (int r = 0; r < hp_strategy_ranks(&e->strategy); r++)
        json_array_append_new(memory, json_integer(e->memory_by_role[r % e->n_role]));
    return json_pack("{s:i, s:s, s:i, s:f, s:f, s:f, s:f, s:I, s:o, s:f, s:f, s:I, s:f, s:b, s:s, s:s, s:s}",
                     "rank", rank, "strategy", c->strategy, "gpus", c->gpus, "step_s", c->step_s,
                     "step_low_s", c->step_low_s, "step_high_s", c->step_high_s, "images_per_s",
                     c->images_per_s, "memory_bytes", (json_int_t)c->memory_bytes, "memory_by_rank", memory,
                     "bubble", c->bubble, "exposed_comm", c->exposed_comm, "comm_bytes",
                     (json_int_t)c->comm_bytes, "measured_share", c->measured_share, "tie", c->tie,
                     "bound_by", e->bound_by, "note", c->note, "prec", hp_prec_names[e->strategy.prec]);
}

json_t *simulate_json(const simulate_setup *s, const simulate_found *f) {
    json_t *candidates = json_array(), *rejected = json_array();
    for (int i = 0; i < f->n; i++) json_array_append_new(candidates, candidate_json(&f->list[i], i + 1));
    for (int i = 0; i < f->n_rejected; i++) {
        const hp_rejected *r = &f->rejected[i];
        json_array_append_new(rejected, json_pack("{s:s, s:I, s:s, s:s, s:s}", "code",
                                                  hp_reject_text(r->code), "count", (json_int_t)r->count,
                                                  "example", r->example, "limit", r->limit, "fix", r->fix));
    }
    char image[32];
    snprintf(image, sizeof image, "%dx%d", s->image_h, s->image_w);
    return json_pack("{s:i, s:s, s:I, s:s, s:i, s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:i, s:o, s:o}",
                     "schema", 1, "net", s->net, "parameters", (json_int_t)hp_graph_param_count(s->graph),
                     "machine", s->machine.name, "gpus", f->gpus, "image", image, "batch",
                     (json_int_t)f->batch, "mode", s->mode == HP_MODE_TRAIN ? "train" : "infer", "searched",
                     (json_int_t)f->searched, "valid", (json_int_t)f->valid, "simulated",
                     (json_int_t)f->simulated, "cut_off", (json_int_t)f->cut_off, "left_out",
                     (json_int_t)f->left_out, "elapsed_s", f->elapsed_s, "chosen", f->n ? f->chosen + 1 : 0,
                     "candidates", candidates, "rejected", rejected);
}
