/* cmd_export.c - converts a trace for other viewers (Chrome/Perfetto JSON, CSV, Nsight-like SQLite), and a
 * cost table's fastest algorithms for NCCL and Open MPI. */
#include "cli/show/frame.h"
#include "costmodels/tuning/tuning_export.h"
#include "costmodels/cost_stored.h"
#include "traces/export/trace_export.h"
#include "traces/outfile.h"

#include <string.h>

enum { FORM_CHROME = 1, FORM_CSV, FORM_NSYS, FORM_NCCL, FORM_OMPI };

typedef struct options {
    const char *output;
    int form;
    bool sim, json;
} options;

static hp_status find_run(hp_db *db, bool sim, int64_t *run, hp_error *err) {
    int64_t simulated = -1, executed = -1;
    HP_TRY(hp_trace_find_pair(db, &simulated, &executed, err));
    *run = sim || executed < 0 ? simulated : executed;
    if (*run >= 0) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s: holds no %s run to export", db->path,
                   sim ? "simulated" : "simulated or executed");
}

static hp_status export_chrome(hp_arena *arena, hp_db *db, const hp_trace *t, const char *path,
                               hp_error *err) {
    static const hp_counter shown[] = {HP_COUNTER_MEMORY, HP_COUNTER_RSS};
    enum { N = sizeof shown / sizeof shown[0] };
    hp_export_counter counter[N];
    for (int i = 0; i < N; i++) {
        counter[i].name = hp_counter_names[shown[i]];
        HP_TRY(hp_trace_counter(arena, db, t->run, counter[i].name, &counter[i].value, &counter[i].n, err));
    }
    return hp_export_chrome(arena, t, counter, N, path, err);
}

/* --- a cost table --- */

static hp_status write_tuning(frame *f, const hp_cost_table *t, hp_tuning_report *r, hp_error *err) {
    const options *o = f->options;
    hp_outfile out;
    HP_TRY(hp_outfile_open(o->output, &out, err));
    hp_status s = o->form == FORM_NCCL ? hp_export_nccl_tuner(f->arena, t, out.f, r, err)
                                       : hp_export_ompi_rules(f->arena, t, out.f, r, err);
    if (s == HP_OK) return hp_outfile_commit(&out, err);
    hp_outfile_discard(&out);
    return s;
}

static hp_status export_tuning(frame *f, hp_error *err) {
    const options *o = f->options;
    hp_cost_table *t = NULL;
    hp_tuning_report r;
    char plain[4096];
    if (o->json && strcmp(o->output, "-") == 0)
        return hp_fail(err, HP_EUSAGE, "-o -: stdout cannot take the rules and --json: give a file name");
    HP_TRY(hp_cost_open(f->arena, f->word[0], &t, err));
    HP_TRY(write_tuning(f, t, &r, err));
    if (o->json)
        return cli_print_json(json_pack("{s:i, s:s, s:i, s:s}", "schema", 1, "kind",
                                        o->form == FORM_NCCL ? "nccl-tuner" : "ompi-rules", "rules", r.rules,
                                        "left_out", r.left_out),
                              err);
    if (*r.left_out)
        fprintf(stderr, "left out for %s: %s\n", o->form == FORM_NCCL ? "NCCL" : "Open MPI", r.left_out);
    fprintf(stderr, "wrote %s: %d rules\n", cli_plain(o->output, plain, sizeof plain), r.rules);
    return cli_finish_stdout(err);
}

/* --- a run --- */

static hp_status export_run(frame *f, hp_error *err) {
    const options *o = f->options;
    hp_trace t;
    int64_t run = -1;
    const bool to_stdout = strcmp(o->output, "-") == 0;
    if (to_stdout && (o->json || o->form == FORM_NSYS))
        return hp_fail(err, HP_EUSAGE, "-o -: %s: give a file name",
                       o->json ? "stdout cannot take the trace and --json" : "SQLite cannot write to stdout");
    HP_TRY(hp_db_open(f->word[0], &f->db, err));
    HP_TRY(find_run(&f->db, o->sim, &run, err));
    HP_TRY(hp_trace_load(f->arena, &f->db, run, true, &t, err));
    if (o->form == FORM_CHROME) HP_TRY(export_chrome(f->arena, &f->db, &t, o->output, err));
    if (o->form == FORM_CSV) HP_TRY(hp_export_csv(&t, o->output, err));
    if (o->form == FORM_NSYS) HP_TRY(hp_export_nsys(f->arena, &t, o->output, err));
    if (o->json)
        return cli_print_json(json_pack("{s:i, s:s, s:I, s:I}", "schema", 1, "kind", t.kind, "run",
                                        (json_int_t)run, "spans", (json_int_t)t.n_span),
                              err);
    char plain[4096];
    fprintf(stderr, "wrote %s: run %lld (%s), %lld spans\n", cli_plain(o->output, plain, sizeof plain),
            (long long)run, t.kind, (long long)t.n_span);
    return cli_finish_stdout(err);
}

static hp_status export(frame *f, hp_error *err) {
    const options *o = f->options;
    return o->form >= FORM_NCCL ? export_tuning(f, err) : export_run(f, err);
}

static bool has_form_and_output(const void *options_) {
    const options *o = options_;
    return o->form && o->output;
}

int cmd_export(int argc, char **argv) {
    static const frame_option list[] = {
        {"chrome", 0, NULL, offsetof(options, form), FORM_CHROME,
         "Chrome trace JSON, for Perfetto and chrome://tracing"},
        {"csv", 0, NULL, offsetof(options, form), FORM_CSV, "one line per span"},
        {"nsys", 0, NULL, offsetof(options, form), FORM_NSYS, "SQLite with Nsight Systems' tables"},
        {"nccl-tuner", 0, NULL, offsetof(options, form), FORM_NCCL,
         "of a cost table: the fastest algorithms, for NCCL's example tuner plugin"},
        {"ompi-rules", 0, NULL, offsetof(options, form), FORM_OMPI,
         "of a cost table: the fastest algorithms, as Open MPI's dynamic rules"},
        {"sim", 0, NULL, offsetof(options, sim), 0, "the prediction, also when the file holds a run"},
        {"output", 'o', "FILE", offsetof(options, output), 0, "where to write; - is stdout"},
        {"json", 'j', NULL, offsetof(options, json), 0, "say as JSON what was written"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "DB --chrome|--csv|--nsys -o FILE\nTABLE.cost|DB --nccl-tuner|--ompi-rules -o FILE",
        .doc = "Writes the newest executed run (the simulated one if there is none) for other viewers: the "
               "newest 512 steps and the evaluation. Or what a cost table found to be the fastest, for "
               "communication "
               "libraries.",
        .min_word = 1,
        .max_word = 1,
        .too_few = "needs a file, a format and an output. For example: hplan export run.db "
                   "--chrome -o trace.json",
        .too_many = "one file at a time: '%s' is one word too many",
        .complete = has_form_and_output,
        .run = export};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
