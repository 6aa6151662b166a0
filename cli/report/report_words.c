/* report_words.c - the report's words: its title, and command lines that make its figures again. */
#include "cli/report/report_data.h"

#include "traces/trace_text.h"
#include "base/text.h"
#include "networks/graph/samples.h"

#include <math.h>

/* "224 x 224"; of a text, which is one wide, "1024 tokens" */
static const char *sample_size(const report *r) {
    const hp_plan *p = &r->plan;
    return hp_graph_reads_ids(p->graph) ? hp_arena_printf(r->arena, "%d tokens", p->image_h)
                                        : hp_arena_printf(r->arena, "%d x %d", p->image_h, p->image_w);
}

const char *report_title(const report *r) {
    const int devices = r->figures.figures.gpus;
    const char *title =
        hp_arena_printf(r->arena, "%.60s, %s, on %d device%s of %.60s", r->plan.net, sample_size(r), devices,
                        devices == 1 ? "" : "s", r->plan.machine.name);
    return hp_text_clean(r->arena, title);
}

const char *report_samples(const report *r) {
    return hp_samples_name(r->plan.graph);
}

const char *report_command(const report *r, const char *verb, const char *path) {
    return hp_text_clean(r->arena,
                         hp_arena_printf(r->arena, "hplan %s %s", verb, hp_shell_word(r->arena, path)));
}

const char *report_on_subject(const report *r, const char *verb, const char *options) {
    const hp_plan *p = &r->plan;
    const char *net = p->model ? "--onnx MODEL.onnx"
                               : hp_arena_printf(r->arena, "--net %s", hp_shell_word(r->arena, p->net));
    const char *image = hp_graph_reads_ids(p->graph)
                            ? ""
                            : hp_arena_printf(r->arena, " --image %dx%d", p->image_h, p->image_w);
    const char *mode = r->plan.program->mode == (int32_t)HP_MODE_INFER ? " --mode infer" : "";
    const int32_t prec = p->strategy.prec;
    const char *precision =
        prec == HP_PREC_FP32 ? "" : hp_arena_printf(r->arena, " --prec %s", hp_prec_names[prec]);
    return hp_text_clean(r->arena, hp_arena_printf(r->arena, "hplan %s %s%s%s%s %s", verb, net, image, mode,
                                                   precision, options));
}

json_t *report_absent(const char *why, const char *command) {
    return json_pack("{s:s, s:s}", "absent", why, "command", command);
}

json_t *report_text(const report *r, const char *text) {
    return json_string(hp_text_clean(r->arena, text));
}

json_t *report_known(double v) {
    return cli_json_number(v > 0 ? v : NAN);
}

json_t *report_names(const char *const *name, int n) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_string(name[i]));
    return list;
}
