/* cmd_check.c - the regression gate: exit 1 when a run is significantly worse than its baseline, beyond the
 * limits. */
#include "cli/show/frame.h"
#include "cli/show/show_places.h"
#include "base/units.h"
#include "traces/check/trace_check.h"
#include "traces/check/compare.h"

#include <math.h>
#include <string.h>

typedef struct options {
    const char *baseline, *slowdown, *memory, *loss;
    bool json;
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
    *l = (hp_check_limits){0.05, 0.05, NAN, false};
    if (o->slowdown) HP_TRY(parse_part(o->slowdown, "--max-slowdown", &l->max_slowdown, err));
    if (o->memory) HP_TRY(parse_part(o->memory, "--max-memory", &l->max_memory, err));
    if (o->loss)
        HP_TRY(parse_fraction(o->loss, "--max-loss-drift", &l->max_loss_drift, &l->loss_relative, err));
    return HP_OK;
}

/* --- text --- */

static const char *value_text(const hp_check_row *r, double v, char out[32]) {
    if (r->unit == HP_CHECK_SECONDS) return v == 0 ? "0" : hp_format_seconds(v, out);
    if (r->unit == HP_CHECK_BYTES) return hp_format_bytes(v, out);
    if (r->unit == HP_CHECK_STATUS && v < 0) return "incomplete";
    snprintf(out, 32, "%.6g", v);
    return out;
}

static void print_value(const hp_check_row *r, double v, double spread) {
    char text[32], with[48];
    snprintf(with, sizeof with, r->unit == HP_CHECK_SECONDS ? "%s ±%3.0f%%" : "%s", value_text(r, v, text),
             100 * spread);
    int columns = 0; /* the sign is two bytes wide, and so is the one of microseconds: pad by characters */
    for (const char *s = with; *s; s++) columns += ((unsigned char)*s & 0xc0) != 0x80;
    printf("%*s%s", columns < 17 ? 17 - columns : 1, "", with);
}

static const char *delta_text(const hp_check *c, const hp_check_row *r, char out[32]) {
    if (isnan(r->delta)) return "";
    if (r->unit == HP_CHECK_SECONDS && c->too_few) return "?";
    if (!isnan(r->p) && r->p >= HP_COMPARE_ALPHA) return "~";
    if (!r->delta_absolute) return hp_format_change(r->delta, out);
    snprintf(out, 32, "%+.4g", r->delta);
    return out;
}

static void print_row(const hp_check *c, const hp_check_row *r) {
    char delta[32], p[32] = "";
    if (!isnan(r->p) && !c->too_few) snprintf(p, sizeof p, r->p < 0.001 ? "<0.001" : "%.3f", r->p);
    printf(" %-15s", r->name);
    print_value(r, r->old_median, r->old_spread);
    print_value(r, r->new_median, r->new_spread);
    const bool word = r->verdict == HP_VERDICT_REGRESSION || r->verdict == HP_VERDICT_BETTER;
    printf(" %9s %7s%s%s\n", delta_text(c, r, delta), p, word ? "  " : "",
           word ? hp_verdict_names[r->verdict] : "");
}

static const char *limit_text(const hp_check_row *r, char out[32]) {
    snprintf(out, 32, r->delta_absolute ? "%.4g" : "%.3g%%", r->delta_absolute ? r->limit : 100 * r->limit);
    return out;
}

static void print_failure(const hp_check_row *r) {
    char limit[32];
    if (r->verdict != HP_VERDICT_REGRESSION) return;
    if (r->unit == HP_CHECK_STATUS && r->new_median < 0)
        printf("FAIL the run is incomplete\n");
    else if (r->unit == HP_CHECK_STATUS)
        printf("FAIL the run ended with status %.0f\n", r->new_median);
    else if (!isfinite(r->new_median))
        printf("FAIL %s is not a finite number\n", r->name);
    else
        printf("FAIL %s is worse than the limit of %s\n", r->name, limit_text(r, limit));
}

static void print_check(const hp_check *c) {
    printf(" %-15s%17s%17s %9s %7s\n", "", "baseline", "run", "change", "p");
    for (int i = 0; i < c->n_row; i++) print_row(c, &c->row[i]);
    printf("\nchange: (run - baseline) / baseline, + is slower or more; ~ may be chance (p >= %.2g)\n",
           HP_COMPARE_ALPHA);
    printf("%d and %d steps%s\n", c->n_old, c->n_new,
           c->warmup_old && c->warmup_new ? ", the first of each left out as warm-up"
                                          : ", warm-up included where steps are few");
    for (int i = 0; i < c->n_row; i++) print_failure(&c->row[i]);
    if (c->too_few)
        printf("not enough steps to tell whether it became slower: %d and %d, %d of each are needed\n",
               c->n_old, c->n_new, c->n_needed);
    else if (c->n_regression == 0)
        printf("ok: no regression\n");
}

static void print_notes(const hp_check *c, const hp_check_side *side) {
    if (c->plans_differ) fprintf(stderr, "hplan: note: the run and its baseline are of different plans\n");
    places_note(&side[0].trace, "baseline", &side[1].trace, "run");
}

/* --- JSON --- */

static json_t *row_json(const hp_check_row *r) {
    static const char *const units[] = {"s", "B", "", ""};
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:s}", "name", r->name, "unit",
                     units[r->unit], "baseline", cli_json_number(r->old_median), "run",
                     cli_json_number(r->new_median), "baseline_spread", cli_json_number(r->old_spread),
                     "run_spread", cli_json_number(r->new_spread), "delta", cli_json_number(r->delta),
                     "delta_absolute", (int)r->delta_absolute, "p", cli_json_number(r->p), "limit",
                     cli_json_number(r->limit), "verdict", hp_verdict_names[r->verdict]);
}

static json_t *check_json(const hp_check *c, const hp_check_side *side) {
    json_t *rows = json_array();
    for (int i = 0; i < c->n_row; i++) json_array_append_new(rows, row_json(&c->row[i]));
    return json_pack("{s:i, s:i, s:i, s:i, s:b, s:i, s:b, s:o, s:o, s:o}", "schema", 1, "regressions",
                     c->n_regression, "baseline_steps", c->n_old, "run_steps", c->n_new, "too_few_steps",
                     (int)c->too_few, "needed_steps", c->n_needed, "plans_differ", (int)c->plans_differ,
                     "baseline_made_on", places_json(&side[0].trace), "run_made_on",
                     places_json(&side[1].trace), "rows", rows);
}

static hp_status check(frame *f, hp_error *err) {
    const options *o = f->options;
    hp_check_limits limits;
    hp_check_side *side = HP_NEW(f->arena, hp_check_side, 2);
    hp_check c;
    HP_TRY(parse_limits(o, &limits, err));
    HP_TRY(hp_check_load(f->arena, o->baseline, &side[0], err));
    HP_TRY(hp_check_load(f->arena, f->word[0], &side[1], err));
    HP_TRY(hp_check_run(f->arena, &side[0], &side[1], &limits, &c, err));
    print_notes(&c, side);
    if (!o->json) print_check(&c);
    HP_TRY(o->json ? cli_print_json(check_json(&c, side), err) : cli_finish_stdout(err));
    return c.n_regression > 0 ? HP_DIFF : HP_OK;
}

static bool has_baseline(const void *o) {
    return ((const options *)o)->baseline != NULL;
}

int cmd_check(int argc, char **argv) {
    static const frame_option list[] = {
        {"baseline", 0, "OLD.db", offsetof(options, baseline), 0, "the run to hold it against"},
        {"max-slowdown", 0, "X%", offsetof(options, slowdown), 0, "the step time may grow by this (5%)"},
        {"max-memory", 0, "X%", offsetof(options, memory), 0, "memory may grow by this (5%)"},
        {"max-loss-drift", 0, "X", offsetof(options, loss), 0,
         "the last loss may grow by this: a difference, or a share with % (not judged)"},
        {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "RUN.db --baseline OLD.db",
        .doc =
            "Median and spread of step and phase times, memory and loss of two runs. Exit status 1 when the "
            "step time or memory, or with --max-loss-drift the loss, grew by more than its limit, the step "
            "time also significantly so (Mann-Whitney, p < 0.05, with enough steps on both sides); and when "
            "the run did not end well or its loss is not a number. Phases and waiting are shown; what they "
            "cost is in the step.",
        .min_word = 1,
        .max_word = 1,
        .too_few = "needs a run and a baseline. For example: hplan check run.db --baseline old.db",
        .too_many = "one run at a time: '%s' is one word too many",
        .complete = has_baseline,
        .run = check};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
