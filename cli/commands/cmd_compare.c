/* cmd_compare.c - predicted beside measured: of one run, of a plan and a run, or two runs. */
#include "cli/history/history_speed.h"
#include "cli/show/compare_show.h"
#include "cli/show/frame.h"
#include "cli/show/show_places.h"
#include "base/units.h"
#include "traces/check/compare.h"

#include <math.h>
#include <string.h>

typedef struct options {
    bool json, tasks, comm, bits;
} options;

/* --- text --- */

static const char *time_text(double seconds, char out[32]) {
    if (isnan(seconds)) return "-";
    return seconds == 0 ? "0" : hp_format_seconds(seconds, out);
}

/* The error of a prediction, or the change between two of a kind. */
static const char *difference_text(const hp_compare_row *r, char out[32]) {
    if (!isnan(r->change)) return hp_format_change(r->change, out);
    if (isnan(r->error)) return "-";
    snprintf(out, 32, "%+.1f%%", 100 * r->error);
    return out;
}

static const char *p_text(double p, char out[32]) {
    if (isnan(p)) return "-";
    if (p >= HP_COMPARE_ALPHA) return "~";
    if (p < 0.001) return "<0.001";
    snprintf(out, 32, "%.3f", p);
    return out;
}

/* The columns of a table: `equal`, with the error at equal machine speed. */
typedef struct layout {
    int width;
    bool equal;
} layout;

static const char *equal_text(const hp_compare_row *r, char out[32]) {
    if (isnan(r->model_error)) return "-";
    snprintf(out, 32, "%+.1f%%", 100 * r->model_error);
    return out;
}

static void print_row(const hp_compare_row *r, layout l) {
    char a[32], b[32], e[32], m[32], p[32];
    printf(" %-*.*s %11s %11s %9s", l.width, l.width, r->name, time_text(r->predicted_s, a),
           time_text(r->measured_s, b), difference_text(r, e));
    if (l.equal) printf(" %9s", equal_text(r, m));
    printf(" %8s\n", p_text(r->p, p));
}

static void print_head(const char *what, const hp_comparison *c, layout l) {
    printf(" %-*s %11s %11s %9s", l.width, what, c->of_prediction ? "predicted" : "A",
           c->of_prediction ? "measured" : "B", c->of_prediction ? "error" : "change");
    if (l.equal) printf(" %9s", "at equal");
    printf(" %8s\n", "p");
}

static void print_side(const char *name, const hp_trace *t, const hp_comparison *c, int side) {
    printf("%s: run %lld (%s) of %.200s, %d rank%s on %.60s (device %.20s%s), %d step%s", name,
           (long long)t->run, t->kind, t->strategy, t->ranks, t->ranks == 1 ? "" : "s", t->machine, t->device,
           strstr(t->strategy, "prec=") ? "" : ", fp32", c->n_iter[side], c->n_iter[side] == 1 ? "" : "s");
    if (c->warmup[side]) printf(" (the first left out as warm-up)");
    if (c->n_partial[side]) printf(" (%d incomplete left out)", c->n_partial[side]);
    if (strcmp(t->kind, "exec") == 0 && t->status > 0) printf(" (the run ended with status %d)", t->status);
    printf("\n");
}

/* The names get what the columns leave. */
static layout layout_of(const run_speed *s) {
    const bool equal = s->split.known;
    return (layout){cli_width() >= 100 ? 44 : cli_width() >= 80 ? 32 - 10 * equal : 16, equal};
}

static void print_speed(const run_speed *s) {
    char text[RUN_SPEED_TEXT];
    if (s->split.known) printf("\n%s\n", run_speed_text(s, text));
}

static void print_comparison(const hp_trace *a, const hp_trace *b, const hp_comparison *c, const run_speed *s,
                             bool tasks) {
    const layout width = layout_of(s);
    print_side(c->of_prediction ? "predicted" : "A", a, c, 0);
    print_side(c->of_prediction ? "measured" : "B", b, c, 1);
    if (!c->of_prediction) printf("change: (B - A) / A, + is slower\n");
    printf("\n");
    print_head("phase (seconds per rank and step)", c, width);
    for (int i = 0; i < c->n_phase; i++) print_row(&c->phase[i], width);
    print_row(&c->step, width);
    print_speed(s);
    printf("\n");
    print_head("kind of task", c, width);
    for (int i = 0; i < c->n_kind; i++) print_row(&c->kind[i], width);
    if (!tasks) return;
    printf("\n");
    print_head("task", c, width);
    for (int i = 0; i < c->n_task; i++) print_row(&c->task[i], width);
}

/* --- JSON --- */

static json_t *row_json(const hp_compare_row *r) {
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", r->name, "predicted_s",
                     cli_json_number(r->predicted_s), "measured_s", cli_json_number(r->measured_s), "error",
                     cli_json_number(r->error), "change", cli_json_number(r->change), "p",
                     cli_json_number(r->p), "expected_s", cli_json_number(r->expected_s), "model_error",
                     cli_json_number(r->model_error));
}

static json_t *rows_json(const hp_compare_row *r, int n) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, row_json(&r[i]));
    return list;
}

static json_t *tasks_json(const hp_comparison *c) {
    json_t *list = json_array();
    for (int i = 0; i < c->n_task; i++) {
        const hp_compare_row *r = &c->task[i];
        json_t *o = row_json(r);
        json_object_del(o, "p");
        json_object_set_new(o, "role", json_integer(r->role));
        json_object_set_new(o, "task", json_integer(r->task));
        json_object_set_new(o, "kind", json_string(r->kind));
        json_object_set_new(o, "phase", json_string(hp_phase_names[r->phase]));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *side_json(const hp_trace *t, const hp_comparison *c, int side) {
    return json_pack("{s:s, s:I, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:o}", "kind", t->kind, "run",
                     (json_int_t)t->run, "strategy", t->strategy, "machine", t->machine, "device", t->device,
                     "ranks", t->ranks, "steps", c->n_iter[side], "warmup_dropped", c->warmup[side],
                     "incomplete_dropped", c->n_partial[side], "status", t->status, "made_on",
                     places_json(t));
}

static json_t *comparison_json(const hp_trace *a, const hp_trace *b, const hp_comparison *c,
                               const run_speed *s) {
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", 1, "step", row_json(&c->step),
                     "phases", rows_json(c->phase, c->n_phase), "kinds", rows_json(c->kind, c->n_kind),
                     "tasks", tasks_json(c), "speed", run_speed_json(s), "predicted", side_json(a, c, 0),
                     "measured", side_json(b, c, 1));
}

static hp_status compare(frame *f, hp_error *err) {
    const options *o = f->options;
    hp_trace a, b;
    hp_comparison c;
    run_speed speed;
    if (o->comm && f->word[1])
        return hp_fail(err, HP_EUSAGE, "--comm is about one run: leave out '%s'", f->word[1]);
    if (o->bits && (o->comm || o->tasks || !f->word[1]))
        return hp_fail(err, HP_EUSAGE, "--bits is about two runs: hplan compare --bits A.db B.db");
    if (o->bits) return bits_show(f->arena, f->word[0], f->word[1], o->json, err);
    if (o->comm) return comm_show(f->arena, f->word[0], o->json, err);
    HP_TRY(hp_compare_load(f->arena, f->word[0], f->word[1], &a, &b, err));
    HP_TRY(hp_compare(f->arena, &a, &b, &c, err));
    run_speed_of_files(f->arena, f->word[0], f->word[1], &a, &b, &c, &speed);
    if (strcmp(a.plan_hash, b.plan_hash) != 0)
        fprintf(stderr, "hplan: note: the two sides are of different plans; tasks are matched where number "
                        "and name agree\n");
    places_note(&a, "A", &b, "B");
    if (o->json) return cli_print_json(comparison_json(&a, &b, &c, &speed), err);
    print_comparison(&a, &b, &c, &speed, o->tasks);
    return cli_finish_stdout(err);
}

int cmd_compare(int argc, char **argv) {
    static const frame_option list[] = {
        {"tasks", 't', NULL, offsetof(options, tasks), 0, "also one line per task"},
        {"comm", 'c', NULL, offsetof(options, comm), 0,
         "messages and collectives by kind, size and back end"},
        {"bits", 'b', NULL, offsetof(options, bits), 0,
         "have two runs --deterministic the same bits? Exit status 1: no, and where not"},
        {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "RUN.db\nA.db B.db",
        .doc =
            "Predicted beside measured, by phase and kind of task: seconds per rank and step. error is "
            "(predicted - measured) / measured. Of two files, two runs or two plans, change is (B - A) / A, "
            "as "
            "in hplan check: + is slower. ~ stands for a difference that may be chance (p >= 0.05, Wilcoxon "
            "against a prediction, Mann-Whitney between two runs). A plan and a run: its prediction. at "
            "equal: the "
            "error at the speed of the machine that was predicted for, where run and cost table have "
            "yardsticks.",
        .min_word = 1,
        .max_word = 2,
        .too_few = "which run? For example: hplan compare run.db",
        .too_many = "two files at most: '%s' is one too many",
        .run = compare};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
