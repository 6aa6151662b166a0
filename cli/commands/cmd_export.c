/* cmd_export.c - converts a trace for other viewers (Chrome/Perfetto JSON, CSV, Nsight-like SQLite), and a
 * cost table's fastest algorithms for NCCL and Open MPI. */
#include "cli/show/frame.h"
#include "costmodels/tuning/tuning_export.h"
#include "costmodels/cost_stored.h"
#include "traces/export/trace_export.h"
#include "traces/outfile.h"
#include "traces/trace_text.h"

#include <string.h>

enum { FORM_CHROME = 1, FORM_CSV, FORM_NSYS, FORM_NCCL, FORM_OMPI };

typedef struct options {
    const char *output;
    int form;
    bool sim, json;
} options;

/* Runs to write: prediction and measurement, -1: not to be written or not in the file. */
typedef struct runs {
    int64_t predicted, measured;
} runs;

/* Both for a viewer of two processes, otherwise the measurement if there is one. */
static hp_status find_runs(hp_db *db, const options *o, runs *r, hp_error *err) {
    HP_TRY(hp_trace_find_pair(db, &r->predicted, &r->measured, err));
    if (o->sim) r->measured = -1;
    if (o->form != FORM_CHROME && r->measured >= 0) r->predicted = -1;
    if (r->predicted >= 0 || r->measured >= 0) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s: holds no %s run to export", db->path,
                   o->sim ? "simulated" : "simulated or executed");
}

static hp_status load_side(hp_arena *arena, hp_db *db, int64_t run, hp_export_side *s, hp_error *err) {
    static const hp_counter shown[] = {HP_COUNTER_MEMORY, HP_COUNTER_RSS};
    enum { N = sizeof shown / sizeof shown[0] };
    HP_TRY(hp_trace_load(arena, db, run, true, &s->trace, err));
    s->n_counter = N;
    s->counter = HP_NEW(arena, hp_export_counter, N);
    for (int i = 0; i < N; i++) {
        hp_export_counter *c = &s->counter[i];
        c->name = hp_counter_names[shown[i]];
        HP_TRY(hp_trace_counter(arena, db, run, c->name, &c->value, &c->n, err));
    }
    return HP_OK;
}

static hp_status load_sides(hp_arena *arena, hp_db *db, const runs *r, hp_export_side side[2], int *n,
                            hp_error *err) {
    *n = 0;
    if (r->predicted >= 0) HP_TRY(load_side(arena, db, r->predicted, &side[(*n)++], err));
    if (r->measured >= 0) HP_TRY(load_side(arena, db, r->measured, &side[(*n)++], err));
    return HP_OK;
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
        return cli_print_json(json_pack("{s:i, s:s, s:s, s:i, s:s}", "schema", 1, "file",
                                        hp_text_clean(f->arena, o->output), "kind",
                                        o->form == FORM_NCCL ? "nccl-tuner" : "ompi-rules", "rules", r.rules,
                                        "left_out", r.left_out),
                              err);
    if (*r.left_out)
        fprintf(stderr, "left out for %s: %s\n", o->form == FORM_NCCL ? "NCCL" : "Open MPI", r.left_out);
    fprintf(stderr, "wrote %s: %d rules\n", cli_plain(o->output, plain, sizeof plain), r.rules);
    return cli_finish_stdout(err);
}

/* --- a run --- */

static hp_status write_run(frame *f, const hp_export_side *side, int n, hp_error *err) {
    const options *o = f->options;
    if (o->form == FORM_CHROME) return hp_export_chrome(f->arena, side, n, o->output, err);
    if (o->form == FORM_CSV) return hp_export_csv(&side[0].trace, o->output, err);
    return hp_export_nsys(f->arena, &side[0].trace, o->output, err);
}

static hp_status export_run(frame *f, hp_error *err) {
    const options *o = f->options;
    runs r;
    hp_export_side side[2];
    int n = 0;
    const bool to_stdout = strcmp(o->output, "-") == 0;
    if (to_stdout && (o->json || o->form == FORM_NSYS))
        return hp_fail(err, HP_EUSAGE, "-o -: %s: give a file name",
                       o->json ? "stdout cannot take the trace and --json" : "SQLite cannot write to stdout");
    HP_TRY(hp_db_open(f->word[0], &f->db, err));
    HP_TRY(find_runs(&f->db, o, &r, err));
    HP_TRY(load_sides(f->arena, &f->db, &r, side, &n, err));
    HP_TRY(write_run(f, side, n, err));
    const hp_trace *t = &side[n - 1].trace;
    if (o->json)
        return cli_print_json(json_pack("{s:i, s:s, s:s, s:I, s:I, s:I}", "schema", 1, "file",
                                        hp_text_clean(f->arena, o->output), "kind", t->kind, "run",
                                        (json_int_t)t->run, "spans", (json_int_t)t->n_span, "predicted_spans",
                                        (json_int_t)(n > 1 ? side[0].trace.n_span : 0)),
                              err);
    char plain[4096];
    fprintf(stderr, "wrote %s: run %lld (%s), %lld spans%s\n", cli_plain(o->output, plain, sizeof plain),
            (long long)t->run, t->kind, (long long)t->n_span, n > 1 ? ", and its prediction" : "");
    return cli_finish_stdout(err);
}

static hp_status export(frame *f, hp_error *err) {
    const options *o = f->options;
    HP_TRY(frame_keep_words(f, o->output, err));
    return o->form >= FORM_NCCL ? export_tuning(f, err) : export_run(f, err);
}

static bool has_form_and_output(const void *options_) {
    const options *o = options_;
    return o->form && o->output;
}

int cmd_export(int argc, char **argv) {
    static const frame_option list[] = {
        {"chrome", 0, NULL, offsetof(options, form), FORM_CHROME,
         "Chrome trace JSON, for Perfetto and chrome://tracing: the prediction beside the run"},
        {"csv", 0, NULL, offsetof(options, form), FORM_CSV, "one line per span"},
        {"nsys", 0, NULL, offsetof(options, form), FORM_NSYS, "SQLite with Nsight Systems' tables"},
        {"nccl-tuner", 0, NULL, offsetof(options, form), FORM_NCCL,
         "of a cost table: the fastest algorithms, for NCCL's example tuner plugin"},
        {"ompi-rules", 0, NULL, offsetof(options, form), FORM_OMPI,
         "of a cost table: the fastest algorithms, as Open MPI's dynamic rules"},
        {"sim", 0, NULL, offsetof(options, sim), 0, "the prediction alone, also when the file holds a run"},
        {"output", 'o', "FILE", offsetof(options, output), 0, "where to write; - is stdout"},
        {"json", 'j', NULL, offsetof(options, json), 0, "say as JSON what was written"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "DB --chrome|--csv|--nsys -o FILE\nTABLE.cost|DB --nccl-tuner|--ompi-rules -o FILE",
        .doc =
            "Writes the newest executed run (the simulated one if there is none) for other viewers: the "
            "newest 512 steps and the evaluation; for Perfetto the prediction, too, as a process of its own "
            "that "
            "begins with the first step after the warm-up. Or what a cost table found to be the fastest, for "
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
