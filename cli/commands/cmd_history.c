/* cmd_history.c - compares past runs with their predictions: how good predictions on this machine have
 * been. */
#include "cli/history/history_line.h"
#include "cli/show/frame.h"
#include "base/host.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

typedef struct options {
    bool json;
    const char *last;
} options;

enum { LAST = 20 };

/* --- text --- */

static const char *error_text(double predicted_s, double measured_s, char out[32]) {
    if (!(measured_s > 0)) return "-";
    snprintf(out, 32, "%+.1f%%", 100 * (predicted_s / measured_s - 1));
    return out;
}

static const char *interval_text(const hp_ledger_entry *e, char out[80]) {
    char low[32], high[32];
    if (!(e->low_s > 0)) return "-";
    snprintf(out, 80, "%s to %s", hp_format_seconds(e->low_s, low), hp_format_seconds(e->high_s, high));
    return out;
}

static void print_row(const hp_ledger_entry *e, bool here) {
    char date[32], interval[80], predicted[32], measured[32], error[32], equal[32], what[200];
    snprintf(what, sizeof what, "%s %s %s", e->net, e->image, e->strategy);
    printf(" %-16s %5lld %9s %19s %9s %8s %8s%s  %.100s\n", history_date(e->started, date),
           (long long)e->ranks, hp_format_seconds(e->predicted_s, predicted), interval_text(e, interval),
           hp_format_seconds(e->measured_s, measured), error_text(e->predicted_s, e->measured_s, error),
           error_text(e->predicted_s, e->equal_speed_s, equal), here ? " " : "*", what);
}

static void print_others(const history_figures *f) {
    if (f->uncalibrated)
        printf("* %d more here, predicted without a calibration of this machine: hplan calibrate\n",
               f->uncalibrated);
    if (f->elsewhere)
        printf("* %d more on other processors, with tables of other processors, or of plans for other "
               "machines\n",
               f->elsewhere);
}

static void print_history(const hp_ledger_entry *e, const bool *use, int n, int last,
                          const history_figures *f) {
    char line[HISTORY_LINE];
    if (n)
        printf(" %-16s %5s %9s %19s %9s %8s %8s   %s\n", "date (UTC)", "ranks", "predicted", "90% interval",
               "measured", "error", "at equal", "plan");
    for (int i = n > last ? n - last : 0; i < n; i++) print_row(&e[i], use[i]);
    printf("%son this machine: %s\n", n ? "\n" : "", history_line(f, line));
    print_others(f);
}

/* --- JSON --- */

static json_t *row_json(const hp_ledger_entry *e, bool here) {
    json_t *o = json_object();
#define TEXT(name)   json_object_set_new(o, #name, json_string(e->name));
#define COUNT(name)  json_object_set_new(o, #name, json_integer(e->name));
#define TIME(name)   json_object_set_new(o, #name, json_real(e->name));
#define FIGURE(name) json_object_set_new(o, #name, cli_json_number(e->name));
#include "traces/ledger.def"
#undef TEXT
#undef COUNT
#undef TIME
#undef FIGURE
    json_object_set_new(o, "counts", json_boolean(here));
    return o;
}

static json_t *all_json(const hp_ledger_entry *e, const bool *use, int n, int last, const history_figures *f,
                        const char *path, const char *processor) {
    json_t *runs = json_array();
    for (int i = n > last ? n - last : 0; i < n; i++) json_array_append_new(runs, row_json(&e[i], use[i]));
    return json_pack("{s:i, s:s, s:s, s:o, s:o}", "schema", 1, "path", path, "processor", processor, "here",
                     history_json(f), "runs", runs);
}

static hp_status history(frame *f, hp_error *err) {
    const options *o = f->options;
    hp_ledger_entry *e = NULL;
    int n = 0;
    int64_t last = o->json ? INT32_MAX : LAST;
    char path[4096], here[128];
    if (o->last) HP_TRY(hp_parse_int(o->last, "--last", 1, INT32_MAX, &last, err));
    HP_TRY(hp_ledger_read(f->arena, hp_ledger_path(path, sizeof path), &e, &n, err));
    bool *use = HP_NEW(f->arena, bool, n);
    hp_host_processor(here, sizeof here);
    const history_figures figures = history_sum(e, n, here, use);
    if (o->json) return cli_print_json(all_json(e, use, n, (int)last, &figures, path, here), err);
    print_history(e, use, n, (int)last, &figures);
    return cli_finish_stdout(err);
}

int cmd_history(int argc, char **argv) {
    static const frame_option list[] = {
        {"last", 0, "N", offsetof(options, last), 0, "show the last N runs (20; with --json all)"},
        {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "",
        .doc =
            "Runs that were predicted, beside what they took. error is (predicted - measured) / measured; at "
            "equal: the same at the speed of the machine that the prediction was made for. The figures "
            "below are of plans that ran on this processor and were predicted with a calibration of it; * "
            "marks others. hplan run --no-history leaves a run out.",
        .max_word = 0,
        .too_many = "'%s' is one word too many: history takes no arguments",
        .run = history};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
