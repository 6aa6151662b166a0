/* simulate_table.c - candidates within the terminal's width: one row per family, and why others have none. */
#include "cli/show/simulate_show.h"
#include "networks/graph/samples.h"

#include "base/units.h"

#include <math.h>
#include <string.h>

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

bool simulate_interval(const hp_candidate *c, const char *between, char out[64]) {
    char low[32], high[32];
    const bool known = c->step_high_s > 0;
    snprintf(out, 64, known ? "%.12s%s%.12s" : "not known", simulate_number(c->step_low_s * 1e3, low),
             between, simulate_number(c->step_high_s * 1e3, high));
    return known;
}

static void text_interval(const hp_evaluation *e, char out[64]) {
    char between[64];
    simulate_interval(&e->figures, "-", between);
    snprintf(out, 64, "(%.60s)", between);
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
                                 {"bubble", 7, 2, text_bubble}, {"comm*", 7, 1, text_comm},
                                 {"meas", 5, 3, text_measured}, {"bound by", 11, 0, text_bound}};
enum { N_COLUMN = sizeof columns / sizeof columns[0], NUMBER_WIDTH = 4, GPUS_WIDTH = 6, MOST_DROP = 4 };

typedef struct layout {
    int strategy; /* width */
    int drop;     /* columns up to this are dropped */
    bool sweep;   /* several numbers of devices: show their column */
} layout;

static bool is_shown(const column *c, int drop) {
    return c->drop == 0 || c->drop > drop;
}

/* Shows the best of each family for each count and precision, and plain data parallelism; --top adds the best
 * K of each count. */
static bool is_wanted(const simulate_setup *s, const simulate_found *f, int i) {
    const hp_evaluation *e = &f->list[i];
    int before = 0;
    bool first = true;
    for (int k = 0; k < i; k++) {
        const hp_evaluation *other = &f->list[k];
        if (other->figures.gpus != e->figures.gpus) continue;
        before++;
        first &= hp_family_of(&other->strategy) != hp_family_of(&e->strategy) ||
                 other->strategy.prec != e->strategy.prec;
    }
    return first || hp_strategy_is_plain(&e->strategy) || (s->top_given && before < s->search.top);
}

int simulate_shown_other(const simulate_setup *s, const simulate_found *f) {
    for (int i = 0; i < f->n; i++)
        if (i != f->chosen && is_wanted(s, f, i)) return i + 1;
    return 0;
}

/* Drops columns, the least important first, until the longest strategy fits; if no column is left to drop,
 * the strategy is truncated. */
static layout choose_columns(const simulate_setup *s, const simulate_found *f) {
    layout l = {.strategy = 8, .sweep = s->curves.sweep};
    for (int i = 0; i < f->n; i++) {
        if (!is_wanted(s, f, i)) continue;
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

static bool is_whole(const layout *l, const hp_evaluation *e) {
    return (int)strlen(e->figures.strategy) <= l->strategy;
}

static void print_row(const layout *l, int number, const hp_evaluation *e, bool tie) {
    const char *strategy = e->figures.strategy;
    const bool fits = is_whole(l, e);
    printf("%s%2d %-*.*s%s", tie ? "~" : " ", number, fits ? l->strategy : 0,
           fits ? l->strategy : l->strategy - 2, strategy, fits ? "" : "..");
    if (l->sweep) printf("%*d", GPUS_WIDTH, e->figures.gpus);
    for (int c = 0; c < N_COLUMN; c++) {
        char text[64];
        if (!is_shown(&columns[c], l->drop)) continue;
        columns[c].text(e, text);
        printf(" %*s", columns[c].width - 1, text); /* a long one moves its row, it joins no other */
    }
    printf("\n");
}

/* "  - dp=128   does not fit: a rank needs 98.6 GB, has 40.0 GB" */
static void print_reason(const layout *l, const char *what, const char *code, const char *why) {
    const int width = (int)strlen(what) > l->strategy ? 0 : l->strategy;
    printf("  - %-*s  %s: %s\n", width, what, code, why);
}

/* Families without a row of their own, each with its reason; with several counts there would be too many. */
static void print_absent(const simulate_setup *s, const simulate_found *f, const layout *l) {
    char text[64], time[32];
    if (s->curves.has_strategy || s->curves.sweep) return;
    if (f->without.plain.count)
        print_reason(l, f->without.plain.example, hp_reject_text(f->without.plain.code),
                     f->without.plain.limit);
    for (int i = 0; i < f->without.n_absent; i++) {
        const hp_absent *a = &f->without.absent[i];
        const hp_rejected *r = &a->nearest;
        if (a->family == HP_FAMILY_DATA && f->without.plain.count) continue;
        snprintf(text, sizeof text, "at least %s a step, not simulated", hp_format_seconds(a->bound, time));
        if (a->bound > 0 && s->search.sort != HP_SORT_MEMORY)
            print_reason(l, hp_family_name(a->family), "slower", text);
        else if (r->count)
            print_reason(l, r->example, hp_reject_text(r->code), r->limit);
    }
}

static void print_like_those(const simulate_setup *s, const simulate_found *f) {
    int hidden = 0;
    for (int i = 0; i < f->n; i++) hidden += !is_wanted(s, f, i);
    if (hidden)
        printf("  one row per family; %d more candidate%s of the same kinds: --top %d shows them\n", hidden,
               hidden > 1 ? "s" : "", s->search.top);
}

void simulate_print_table(const simulate_setup *s, const simulate_found *f) {
    const layout l = choose_columns(s, f);
    printf("\n  # %-*s", l.strategy, "strategy");
    if (l.sweep) printf("%*s", GPUS_WIDTH, "gpus");
    for (int c = 0; c < N_COLUMN; c++) {
        const bool rate = columns[c].text == text_images;
        if (is_shown(&columns[c], l.drop))
            printf("%*s", columns[c].width, rate ? hp_samples_rate(s->network.trained) : columns[c].title);
    }
    printf("\n");
    const hp_evaluation *above = NULL;
    bool tied = false;
    for (int i = 0; i < f->n; i++) {
        if (!is_wanted(s, f, i)) continue;
        const bool tie = above && hp_search_tie(above, &f->list[i]);
        print_row(&l, i + 1, &f->list[i], tie);
        above = &f->list[i];
        tied |= tie;
    }
    print_absent(s, f, &l);
    for (int i = 0; i < f->n; i++) /* as --strategy takes them */
        if (is_wanted(s, f, i) && !is_whole(&l, &f->list[i]))
            printf("  number %d is %s\n", i + 1, f->list[i].figures.strategy);
    print_like_those(s, f);
    if (l.drop < 3)
        printf("  meas: share of the time that was measured%s\n",
               l.drop < 1 ? "; *exposed: waited for, not hidden" : "");
    if (tied)
        printf("  ~not distinguishable from the one above: the difference is within what their errors "
               "explain\n");
}
