/* cmd_eval.c - what lower precision costs in accuracy: the same network, weights and test images by
 * precision, each against fp32; or logits that others have computed. */
#include "cli/bench/bench_list.h"
#include "cli/show/eval_show.h"
#include "cli/show/frame.h"
#include "cli/commands/command_weights.h"
#include "base/units.h"
#include "sim/search/conditions.h"
#include "traces/logits.h"
#include "traces/trace_text.h"

#include <math.h>
#include <string.h>

typedef struct options {
    const char *net, *onnx, *image, *classes, *weights, *quant, *data, *prec, *batch, *strategy, *device,
        *threads, *mean, *std, *channels, *bands, *resize, *logits, *labels;
    bool json, random_weights;
} options;

static const frame_option OPTIONS[] = {
    {"net", 0, "NAME", offsetof(options, net), 0, "network, instead of a plan"},
    {"onnx", 0, "FILE", offsetof(options, onnx), 0, "network from a file, instead of a plan"},
    {"image", 0, "S|HxW", offsetof(options, image), 0, "its image size (224)"},
    {"classes", 0, "K", offsetof(options, classes), 0, "its classes (the network's default)"},
    {"weights", 0, "FILE", offsetof(options, weights), 0,
     "trained weights, safetensors or ONNX (those of --onnx)"},
    {"random-weights", 0, NULL, offsetof(options, random_weights), 0, "real images without --weights"},
    {"quant", 0, "FILE", offsetof(options, quant), 0,
     "int8 weights and scales, as hplan quantize writes them"},
    {"data", 0, "DATA", offsetof(options, data), 0,
     "synthetic, fashion-mnist, a folder, or FILE,.. (synthetic)"},
    {"prec", 0, "LIST", offsetof(options, prec), 0, "precisions beside fp32 (int8)"},
    {"batch", 0, "B", offsetof(options, batch), 0, "images at a time (1 per device)"},
    {"strategy", 0, "S", offsetof(options, strategy), 0, "how it is run (dp=1)"},
    {"device", 0, HP_DEVICE_NAMES_ON_HOST, offsetof(options, device), 0, "what computes (the plan's; cpu)"},
    {"threads", 0, "T", offsetof(options, threads), 0, "threads per rank (1)"},
    {"mean", 0, "X,..", offsetof(options, mean), 0, "mean of the pixels, per channel (0.5)"},
    {"std", 0, "X,..", offsetof(options, std), 0, "standard deviation of the pixels, per channel (0.5)"},
    {"channels", 0, "N", offsetof(options, channels), 0, "read images with N channels"},
    {"bands", 0, "N,..", offsetof(options, bands), 0,
     "bands of the images that the network sees, as in 4,3,2"},
    {"resize", 0, "S", offsetof(options, resize), 0, "shorter side to S pixels, then the centre"},
    {"logits", 0, "FILE,..", offsetof(options, logits), 0,
     "compare these .npy files instead, (images, classes), the first being the reference"},
    {"labels", 0, "FILE", offsetof(options, labels), 0, "their labels, .npy; negative ones are left out"},
    {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
    {0}};

static hp_status parse_int(const char *text, const char *what, int64_t high, int64_t *value, hp_error *err) {
    return text ? hp_parse_int(text, what, 1, high, value, err) : HP_OK;
}

/* --- the network --- */

static hp_status read_plan(hp_arena *arena, const char *path, serve_request *r, hp_error *err) {
    hp_db db;
    hp_plan *plan = HP_NEW(arena, hp_plan, 1);
    hp_eval_setup *under = HP_NEW(arena, hp_eval_setup, 1);
    HP_TRY(hp_db_open(path, &db, err));
    hp_status status = hp_plan_read(arena, &db, plan, err);
    if (status == HP_OK) status = hp_conditions_read(arena, &db, plan, under, err);
    hp_db_close(&db);
    HP_TRY(status);
    r->net = hp_arena_strdup(arena, plan->net);
    r->of = plan;
    r->under = under;
    return HP_OK;
}

static hp_status parse_network(hp_arena *arena, const frame *f, serve_request *r, hp_error *err) {
    const options *o = f->options;
    const bool plan = f->n_word > 0;
    int h = 0, w = 0; /* what the ONNX file or the name of a network of text says, or the default */
    if (plan + (o->net != NULL) + (o->onnx != NULL) != 1)
        return hp_fail(
            err, HP_EUSAGE,
            "which network? A plan, --net or --onnx, for example: hplan eval --net cnn --image 28 --data "
            "fashion-mnist --weights cnn.safetensors");
    if (plan && (o->image || o->classes))
        return hp_fail(err, HP_EUSAGE, "--image and --classes are the plan's own; give --net without a plan");
    if (plan) return read_plan(arena, f->word[0], r, err);
    if (o->image) HP_TRY(cli_parse_image(o->image, &h, &w, err));
    HP_TRY(parse_int(o->classes, "--classes", 1 << 24, &r->classes, err));
    r->net = o->net;
    r->onnx = o->onnx;
    r->image_h = h;
    r->image_w = w;
    return HP_OK;
}

static void pass_on(hp_arena *arena, const char *name, const char *value, eval_setup *s) {
    HP_ASSERT(s->n_pass < EVAL_PASS);
    if (value) s->pass[s->n_pass++] = hp_arena_printf(arena, "--%s=%s", name, value);
}

static hp_status parse(hp_arena *arena, const frame *f, eval_setup *s, hp_error *err) {
    const options *o = f->options;
    *s = (eval_setup){.weights = cli_weights_of(o->weights, o->onnx),
                      .quant = o->quant,
                      .data = o->data ? o->data : "synthetic",
                      .threads = 1,
                      .request = {.strategy = o->strategy ? o->strategy : "dp=1", .device = o->device}};
    s->data_name = hp_text_clean(arena, s->data);
    HP_TRY(parse_network(arena, f, &s->request, err));
    HP_TRY(parse_int(o->batch, "--batch", 1 << 20, &s->request.batch, err));
    HP_TRY(parse_int(o->threads, "--threads", 4096, &s->threads, err));
    if (strstr(s->request.strategy, "prec="))
        return hp_fail(err, HP_EUSAGE, "--strategy: give the precisions with --prec");
    pass_on(arena, "mean", o->mean, s);
    pass_on(arena, "std", o->std, s);
    pass_on(arena, "channels", o->channels, s);
    pass_on(arena, "bands", o->bands, s);
    pass_on(arena, "resize", o->resize, s);
    return HP_OK;
}

/* fp32 comes first: it is what the others are held against. */
static hp_status parse_precisions(hp_arena *arena, const char *text, bench_list *l, hp_error *err) {
    bench_list given;
    HP_TRY(bench_list_parse(arena, text ? text : "int8", "--prec", false, &given, err));
    *l = (bench_list){.n = 1, .word = {"fp32"}};
    for (int i = 0; i < given.n && l->n < BENCH_LIST; i++)
        if (strcmp(given.word[i], "fp32") != 0) l->word[l->n++] = given.word[i];
    return HP_OK;
}

static hp_status run_all(hp_arena *arena, const eval_setup *s, const workspace *w, const bench_list *l,
                         eval_result *r, hp_error *err) {
    for (int i = 0; i < l->n; i++) {
        HP_TRY(eval_run(arena, s, w, l->word[i], &r[i], err));
        if (i == 0 && r[0].why) return hp_fail(err, HP_EPLAN, "fp32: %s", r[0].why);
        if (!r[i].why) HP_TRY(eval_compare(&r[0], &r[i], err));
    }
    return HP_OK;
}

static hp_status eval_network(frame *f, eval_setup *s, eval_result *r, int *n, hp_error *err) {
    const options *o = f->options;
    const char *tmp = getenv("TMPDIR");
    bench_list l;
    workspace w;
    if (o->labels)
        return hp_fail(err, HP_EUSAGE, "--labels goes with --logits; images of --data have theirs");
    HP_TRY(parse(f->arena, f, s, err));
    if (!s->weights && cli_data_is_real(o->data, NULL))
        HP_TRY(cli_weights_random(o->random_weights, "--weights", err));
    HP_TRY(parse_precisions(f->arena, o->prec, &l, err));
    HP_TRY(workspace_open(hp_arena_printf(f->arena, "%s/hplan-eval", tmp && tmp[0] ? tmp : "/tmp"), &w, err));
    const hp_status status = run_all(f->arena, s, &w, &l, r, err);
    workspace_close(&w);
    *n = l.n;
    return status;
}

/* --- logits that are there --- */

static hp_status add_accuracy(hp_arena *arena, const char *path, eval_result *r, int n, hp_error *err) {
    hp_npy label;
    HP_TRY(hp_npy_read(arena, path, &label, err));
    const hp_npy *x = &r[0].logits;
    const int64_t classes = x->dim[x->n_dim - 1], rows = x->count / classes;
    if (label.count != rows)
        return hp_fail(err, HP_EDATA, "%s: %lld labels for %lld rows of logits", path, (long long)label.count,
                       (long long)rows);
    for (int i = 0; i < n; i++) r[i].accuracy = hp_logits_top1(r[i].logits.data, label.data, rows, classes);
    return HP_OK;
}

static hp_status eval_files(frame *f, eval_result *r, int *n, hp_error *err) {
    const options *o = f->options;
    bench_list l;
    if (o->net || f->n_word)
        return hp_fail(err, HP_EUSAGE, "--logits are there already: they need neither a plan nor --net");
    HP_TRY(bench_list_parse(f->arena, o->logits, "--logits", true, &l, err));
    *n = l.n;
    for (int i = 0; i < l.n; i++) {
        r[i] = (eval_result){.name = hp_text_clean(f->arena, l.word[i]),
                             .accuracy = NAN,
                             .peak_bytes = NAN,
                             .images_per_s = NAN};
        HP_TRY(hp_npy_read(f->arena, l.word[i], &r[i].logits, err));
        HP_TRY(eval_compare(&r[0], &r[i], err));
    }
    return o->labels ? add_accuracy(f->arena, o->labels, r, *n, err) : HP_OK;
}

static hp_status eval(frame *f, hp_error *err) {
    const options *o = f->options;
    eval_setup s = {0};
    eval_result *r = HP_NEW(f->arena, eval_result, BENCH_LIST);
    int n = 0;
    HP_TRY(o->logits ? eval_files(f, r, &n, err) : eval_network(f, &s, r, &n, err));
    if (o->json) return cli_print_json(eval_json(&s, r, n), err);
    eval_print(r, n);
    return cli_finish_stdout(err);
}

int cmd_eval(int argc, char **argv) {
    static const frame_command command = {
        .option = OPTIONS,
        .usage = "[PLAN.db]",
        .doc = "Runs a network over its test images by precision and prints, against fp32: accuracy, how "
               "often both answer the same, and the signal-to-quantisation-noise ratio of the logits.",
        .max_word = 1,
        .too_many = "one plan at a time: '%s' is one word too many",
        .run = eval};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
