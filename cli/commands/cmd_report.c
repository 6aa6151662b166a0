/* cmd_report.c - one self-contained page about a plan and its run. */
#include "cli/report/report_data.h"
#include "cli/show/frame.h"
#include "plots/report/page.h"
#include "traces/outfile.h"
#include "traces/trace_text.h"

#include <string.h>

typedef struct options {
    const char *output;
    bool json;
} options;

static json_t *files_json(const report *r) {
    json_t *files = json_array();
    for (int i = 0; i < r->n; i++) json_array_append_new(files, json_string(r->source[i].path));
    return files;
}

static hp_status make_data(const report *r, json_t **data, hp_error *err) {
    json_t *candidates = NULL;
    const hp_status status = report_candidates(r, &candidates, err);
    *data = json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", 1, "samples",
                      report_samples(r), "files", files_json(r), "answer", report_answer(r), "candidates",
                      candidates, "timeline", report_timeline(r), "memory", report_memory(r), "scaling",
                      report_scaling(r), "pareto", report_pareto(r), "error", report_errors(r), "basis",
                      report_basis(r));
    HP_ASSERT(*data != NULL);
    return status;
}

static hp_status write_page(const report *r, const json_t *data, const char *path, hp_error *err) {
    hp_outfile out;
    HP_TRY(hp_outfile_open(path, &out, err));
    char *text = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
    HP_ASSERT(text != NULL);
    hp_report_page(out.f, report_title(r), text);
    free(text);
    return hp_outfile_commit(&out, err);
}

static hp_status make_report(frame *f, hp_error *err) {
    const options *o = f->options;
    report r;
    json_t *data = NULL;
    char plain[4096];
    if (o->json && strcmp(o->output, "-") == 0)
        return hp_fail(err, HP_EUSAGE, "-o -: stdout cannot take the page and --json: give a file name");
    HP_TRY(frame_keep_words(f, o->output, err));
    HP_TRY(report_read(f->arena, f->word, f->n_word, &r, err));
    hp_status status = make_data(&r, &data, err);
    if (status == HP_OK) status = write_page(&r, data, o->output, err);
    json_decref(data);
    HP_TRY(status);
    if (o->json)
        return cli_print_json(json_pack("{s:i, s:s, s:o}", "schema", 1, "kind", "report", "file",
                                        json_string(hp_text_clean(f->arena, o->output))),
                              err);
    if (strcmp(o->output, "-") != 0) fprintf(stderr, "wrote %s\n", cli_plain(o->output, plain, sizeof plain));
    return cli_finish_stdout(err);
}

static bool has_output(const void *options_) {
    return ((const options *)options_)->output != NULL;
}

int cmd_report(int argc, char **argv) {
    static const frame_option list[] = {
        {"output", 'o', "FILE", offsetof(options, output), 0, "where to write the page; - is stdout"},
        {"json", 'j', NULL, offsetof(options, json), 0, "say as JSON what was written"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "DB... -o FILE.html",
        .doc = "Writes one HTML page that loads nothing: the answer in a sentence, the candidates, the step "
               "as it "
               "was predicted and measured, memory, charts, and what the prediction rests on. The first "
               "file's plan is the subject; a run of it, and sweeps over devices, may follow.",
        .min_word = 1,
        .max_word = 16,
        .too_few = "needs a file and an output. For example: hplan report run.db -o r.html",
        .too_many = "at most 16 files: '%s' is one too many",
        .complete = has_output,
        .run = make_report};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
