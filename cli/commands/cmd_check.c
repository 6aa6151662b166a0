/* cmd_check.c - the regression gate: exit 1 when a run is significantly worse than its baseline, beyond the
 * limits. */
#include "cli/show/frame.h"
#include "plan/base/units.h"
#include "traces/check/check.h"
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

static hp_status parse_limits(const options *o, hp_check_limits *l, hp_error *err) {
    bool percent = false;
    *l = (hp_check_limits){0.05, 0.05, NAN, false};
    if (o->slowdown) HP_TRY(parse_fraction(o->slowdown, "--max-slowdown", &l->max_slowdown, &percent, err));
    if (o->memory) HP_TRY(parse_fraction(o->memory, "--max-memory", &l->max_memory, &percent, err));
    if (o->loss)
        HP_TRY(parse_fraction(o->loss, "--max-loss-drift", &l->max_loss_drift, &l->loss_relative, err));
    return HP_OK;
}

/* --- text --- */

static const char *value_text(const hp_check_row *r, double v, char out[32]) {
    if (r->unit == HP_CHECK_SECONDS) return v == 0 ? "0" : hp_format_seconds(v, out);
    if (r->unit == HP_CHECK_BYTES) return hp_format_bytes(v, out);
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

static void print_row(const hp_check_row *r) {
    char delta[32], p[32] = "";
    const bool chance = !isnan(r->p) && r->p >= HP_COMPARE_ALPHA;
    if (chance)
        snprintf(delta, sizeof delta, "~");
    else
        snprintf(delta, sizeof delta, r->delta_absolute ? "%+.4g" : "%+.2f%%",
                 r->delta_absolute ? r->delta : 100 * r->delta);
    if (!isnan(r->p)) snprintf(p, sizeof p, r->p < 0.001 ? "<0.001" : "%.3f", r->p);
    printf(" %-15s", r->name);
    print_value(r, r->old_median, r->old_spread);
    print_value(r, r->new_median, r->new_spread);
    const bool word = r->verdict == HP_VERDICT_REGRESSION || r->verdict == HP_VERDICT_BETTER;
    printf(" %9s %7s%s%s\n", delta, p, word ? "  " : "", word ? hp_verdict_names[r->verdict] : "");
}

static const char *limit_text(const hp_check_row *r, char out[32]) {
    snprintf(out, 32, r->delta_absolute ? "%.4g" : "%.3g%%", r->delta_absolute ? r->limit : 100 * r->limit);
    return out;
}

static void print_check(const hp_check *c) {
    char limit[32];
    printf(" %-15s%17s%17s %9s %7s\n", "", "baseline", "run", "delta", "p");
    for (int i = 0; i < c->n_row; i++) print_row(&c->row[i]);
    printf("\n%d and %d steps, %s; ~ stands for a difference that may be chance (p >= %.2g)\n", c->n_old,
           c->n_new,
           c->warmup_old && c->warmup_new ? "the first of each left out as warm-up"
                                          : "warm-up included where steps are few",
           HP_COMPARE_ALPHA);
    for (int i = 0; i < c->n_row; i++)
        if (c->row[i].verdict == HP_VERDICT_REGRESSION)
            printf("FAIL %s is worse than the limit of %s\n", c->row[i].name, limit_text(&c->row[i], limit));
    if (c->n_regression == 0) printf("ok: no regression\n");
}

static void print_notes(const hp_check *c, const hp_check_side *new_side) {
    if (c->too_few)
        fprintf(stderr,
                "hplan: note: %d and %d steps are too few for any difference in time to be significant; run "
                "at least 6\n",
                c->n_old, c->n_new);
    if (c->plans_differ) fprintf(stderr, "hplan: note: the run and its baseline are of different plans\n");
    if (new_side->trace.status > 0)
        fprintf(stderr, "hplan: note: the run ended with status %d\n", new_side->trace.status);
}

/* --- JSON --- */

static json_t *row_json(const hp_check_row *r) {
    static const char *const units[] = {"s", "B", ""};
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:s}", "name", r->name, "unit",
                     units[r->unit], "baseline", cli_json_number(r->old_median), "run",
                     cli_json_number(r->new_median), "baseline_spread", cli_json_number(r->old_spread),
                     "run_spread", cli_json_number(r->new_spread), "delta", cli_json_number(r->delta),
                     "delta_absolute", (int)r->delta_absolute, "p", cli_json_number(r->p), "limit",
                     cli_json_number(r->limit), "verdict", hp_verdict_names[r->verdict]);
}

static json_t *check_json(const hp_check *c) {
    json_t *rows = json_array();
    for (int i = 0; i < c->n_row; i++) json_array_append_new(rows, row_json(&c->row[i]));
    return json_pack("{s:i, s:i, s:i, s:i, s:b, s:b, s:o}", "schema", 1, "regressions", c->n_regression,
                     "baseline_steps", c->n_old, "run_steps", c->n_new, "too_few_steps", (int)c->too_few,
                     "plans_differ", (int)c->plans_differ, "rows", rows);
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
    print_notes(&c, &side[1]);
    if (!o->json) print_check(&c);
    HP_TRY(o->json ? cli_print_json(check_json(&c), err) : cli_finish_stdout(err));
    return c.n_regression > 0 ? HP_DIFF : HP_OK;
}

static bool has_baseline(const void *o) {
    return ((const options *)o)->baseline != NULL;
}

int cmd_check(int argc, char **argv) {
    static const frame_option list[] = {
        {"baseline", 0, "OLD.db", offsetof(options, baseline), 0, "the run to hold it against"},
        {"max-slowdown", 0, "X%", offsetof(options, slowdown), 0,
         "step and phase times may grow by this (5%)"},
        {"max-memory", 0, "X%", offsetof(options, memory), 0, "memory may grow by this (5%)"},
        {"max-loss-drift", 0, "X", offsetof(options, loss), 0,
         "the last loss may grow by this: a difference, or a share with % (not judged)"},
        {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "RUN.db --baseline OLD.db",
        .doc =
            "Median and spread of step and phase times, memory and loss of two runs. Exit status 1 when "
            "something became worse by more than its limit and, for times, significantly so (Mann-Whitney, "
            "p < 0.05; phases with Holm's correction). Waiting and communication are shown, and judged as "
            "part of the step.",
        .min_word = 1,
        .max_word = 1,
        .too_few = "needs a run and a baseline. For example: hplan check run.db --baseline old.db",
        .too_many = "one run at a time: '%s' is one word too many",
        .complete = has_baseline,
        .run = check};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
