/* cmd_check.c - the regression gate: exit 1 when runs are significantly worse than their baseline, beyond the
 * limits. */
#include "cli/gate/gate.h"
#include "cli/show/frame.h"
#include "cli/show/show_places.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

typedef struct options {
    const char *baseline, *slowdown, *memory, *loss, *junit;
    bool phases, json, markdown;
} options;

/* "5%" or "0.05"; *percent says which. */
static hp_status parse_fraction(const char *text, const char *what, double *value, bool *percent,
                                hp_error *err) {
    char digits[64];
    const size_t n = strlen(text);
    *percent = n > 0 && text[n - 1] == '%';
    if (n >= sizeof digits) return hp_fail(err, HP_EUSAGE, "%s takes a number such as 5%%", what);
    snprintf(digits, sizeof digits, "%.*s", (int)(n - *percent), text);
    HP_TRY(hp_parse_double(digits, what, 0, 1e9, value, err));
    if (*percent) *value /= 100;
    return HP_OK;
}

/* A part of the baseline: 5 is one of 5 % or of 500 %, and nobody can tell which. */
static hp_status parse_part(const char *text, const char *what, double *value, hp_error *err) {
    bool percent;
    HP_TRY(parse_fraction(text, what, value, &percent, err));
    if (percent || *value <= 1) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "%s %s: %s%% of the baseline, or %.6g%%? fix: %s %s%%", what, text, text,
                   100 * *value, what, text);
}

static hp_status parse_limits(const options *o, hp_check_limits *l, hp_error *err) {
    *l = (hp_check_limits){0.05, 0.05, NAN, false, o->phases};
    if (o->slowdown) HP_TRY(parse_part(o->slowdown, "--max-slowdown", &l->max_slowdown, err));
    if (o->memory) HP_TRY(parse_part(o->memory, "--max-memory", &l->max_memory, err));
    if (o->loss)
        HP_TRY(parse_fraction(o->loss, "--max-loss-drift", &l->max_loss_drift, &l->loss_relative, err));
    return HP_OK;
}

/* The runs stand before --baseline, their baseline after it. Without a run before it, the only file that is
 * no argument of --baseline is the run. */
static hp_status split_words(frame *f, const char **run, int *n_run, const char **base, int *n_base,
                             hp_error *err) {
    *n_run = *n_base = 0;
    for (int i = 0; i < f->n_word; i++) {
        const bool is_base = f->n_first > 0 ? i >= f->n_first : f->collected[i];
        if (is_base)
            base[(*n_base)++] = f->word[i];
        else
            run[(*n_run)++] = f->word[i];
    }
    if (*n_run == 0)
        return hp_fail(err, HP_EUSAGE,
                       "needs a run and a baseline. For example: hplan check run.db --baseline old.db");
    if (f->n_first > 0 || *n_run == 1) return HP_OK;
    return hp_fail(err, HP_EUSAGE,
                   "which files are the baseline? The runs come first: hplan check NEW.db... --baseline "
                   "OLD.db...");
}

static void print_notes(const hp_check *c, const gate *g) {
    const hp_trace *first = &g->old->run[0].trace;
    if (c->plans_differ) fprintf(stderr, "hplan: note: the run and its baseline are of different plans\n");
    for (int side = 0; side < 2; side++) {
        const hp_check_side *s = side ? g->new : g->old;
        for (int i = 0; i < s->n; i++)
            if (places_note(first, "baseline", &s->run[i].trace, side ? "run" : "another baseline")) return;
    }
}

static bool is_stdout(const char *path) {
    return path && strcmp(path, "-") == 0;
}

static hp_status one_form(const options *o, hp_error *err) {
    if (o->json + o->markdown + is_stdout(o->junit) <= 1) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "--json, --markdown and --junit - all want stdout: choose one of them");
}

static hp_status show(const gate *g, const options *o, hp_error *err) {
    if (o->junit) HP_TRY(gate_write_junit(g, o->junit, err));
    if (o->json) return cli_print_json(gate_json(g), err);
    if (o->markdown)
        gate_print_markdown(g);
    else if (!is_stdout(o->junit))
        gate_print_table(g);
    return cli_finish_stdout(err);
}

static hp_status check(frame *f, hp_error *err) {
    const options *o = f->options;
    const char *run[FRAME_WORDS], *base[FRAME_WORDS];
    int n_run, n_base;
    hp_check_limits limits;
    hp_check_side old, new;
    hp_check c;
    HP_TRY(parse_limits(o, &limits, err));
    HP_TRY(one_form(o, err));
    HP_TRY(split_words(f, run, &n_run, base, &n_base, err));
    HP_TRY(hp_check_load(f->arena, base, n_base, &old, err));
    HP_TRY(hp_check_load(f->arena, run, n_run, &new, err));
    hp_check_run(f->arena, &old, &new, &limits, &c);
    const gate g = {f->arena, &c, &old, &new};
    print_notes(&c, &g);
    HP_TRY(show(&g, o, err));
    return c.n_regression > 0 ? HP_DIFF : HP_OK;
}

static bool has_baseline(const void *o) {
    return ((const options *)o)->baseline != NULL;
}

int cmd_check(int argc, char **argv) {
    static const frame_option list[] = {
        {"baseline", 0, "OLD.db...", offsetof(options, baseline), 0,
         "the runs to hold them against: all files that follow"},
        {"max-slowdown", 0, "X%", offsetof(options, slowdown), 0, "the step time may grow by this (5%)"},
        {"max-memory", 0, "X%", offsetof(options, memory), 0, "memory may grow by this (5%)"},
        {"max-loss-drift", 0, "X", offsetof(options, loss), 0,
         "the last loss may grow by this: a difference, or a share with % (not judged)"},
        {"phases", 0, NULL, offsetof(options, phases), 0,
         "judge the phases like the step; the tests share the level of 0.05"},
        {"markdown", 0, NULL, offsetof(options, markdown), 0, "a Markdown table, for a comment or a summary"},
        {"junit", 0, "FILE.xml", offsetof(options, junit), 0,
         "also as JUnit XML; - is stdout, in place of the table"},
        {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "NEW.db... --baseline OLD.db...",
        .doc =
            "Median and interval of step and phase times, memory and loss of runs and their baseline. One "
            "run "
            "a side: its steps are the samples. Several: a run is a sample, by its median step. Exit status: "
            "1 when the step time or memory, or with --max-loss-drift the loss, grew by more than its limit, "
            "the step time also significantly so (Mann-Whitney, p < 0.05, at least 4 samples a side), and "
            "when "
            "a run did not end well or its loss is not a number; otherwise 0, also with too few samples to "
            "tell; 2: a wrong command line; 65: a file without a run. Phases are shown, and judged with "
            "--phases; what they cost is in the step.",
        .min_word = 2,
        .max_word = FRAME_WORDS,
        .too_few = "needs a run and a baseline. For example: hplan check run.db --baseline old.db",
        .too_many = "64 files at most: '%s' is one too many",
        .collects = "baseline",
        .complete = has_baseline,
        .run = check};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
