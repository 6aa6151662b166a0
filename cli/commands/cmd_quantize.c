/* cmd_quantize.c - 8-bit weights and the scales of every tensor, from trained weights and images: plans the
 * network in fp32, runs it through hplan-exec over the images, watched, and leaves a file that `run --init`
 * takes. */
#include "cli/show/frame.h"
#include "cli/show/next.h"
#include "cli/options/simulate.h"
#include "cli/commands/run_here.h"
#include "cli/commands/command_weights.h"
#include "cli/launch/workspace.h"
#include "base/units.h"
#include "sim/search/conditions.h"

#include <string.h>

typedef struct options {
    const char *net, *onnx, *image, *classes, *strategy, *batch, *device, *weights, *calib, *observer,
        *percentile, *images, *prec, *out, *float_layers, *threads, *mean, *std, *channels, *bands, *resize;
    bool equalise, uncorrected, json;
} options;

static const frame_option OPTIONS[] = {
    {"net", 0, "NAME", offsetof(options, net), 0, "network, instead of a plan"},
    {"onnx", 0, "FILE", offsetof(options, onnx), 0, "network from a file, instead of a plan"},
    {"image", 0, "S|HxW", offsetof(options, image), 0, "its image size (224)"},
    {"classes", 0, "K", offsetof(options, classes), 0, "its classes (the network's default)"},
    {"strategy", 0, "S", offsetof(options, strategy), 0, "how it is run (the plan's; dp=1)"},
    {"batch", 0, "B", offsetof(options, batch), 0, "images at a time (one per device)"},
    {"device", 0, HP_DEVICE_NAMES_ON_HOST, offsetof(options, device), 0, "what computes (the plan's; cpu)"},
    {"weights", 'w', "FILE", offsetof(options, weights), 0,
     "trained weights, safetensors or ONNX (those of --onnx)"},
    {"calib", 0, "DATA", offsetof(options, calib), 0,
     "images: synthetic, fashion-mnist, a folder, or FILE,.."},
    {"observer", 0, "NAME", offsetof(options, observer), 0,
     "how ranges are chosen: minmax, percentile, entropy, mse (mse)"},
    {"percentile", 0, "P", offsetof(options, percentile), 0, "of that observer (99.99)"},
    {"images", 'n', "N", offsetof(options, images), 0, "how many to read (256)"},
    {"prec", 0, "int8", offsetof(options, prec), 0, "what to quantise to (int8)"},
    {"float-layers", 0, "LIST", offsetof(options, float_layers), 0, "layers that stay real, by name"},
    {"equalise", 0, NULL, offsetof(options, equalise), 0, "even out weights across layers first"},
    {"no-correction", 0, NULL, offsetof(options, uncorrected), 0, "leave biases as they are"},
    {"threads", 0, "T", offsetof(options, threads), 0, "threads per rank (1)"},
    {"mean", 0, "X,..", offsetof(options, mean), 0, "mean of the pixels, per channel (0.5)"},
    {"std", 0, "X,..", offsetof(options, std), 0, "standard deviation of the pixels, per channel (0.5)"},
    {"channels", 0, "N", offsetof(options, channels), 0, "read images with N channels"},
    {"bands", 0, "N,..", offsetof(options, bands), 0,
     "bands of the images that the network sees, as in 4,3,2"},
    {"resize", 0, "S", offsetof(options, resize), 0, "shorter side to S pixels, then the centre"},
    {"out", 'o', "FILE", offsetof(options, out), 0, "where the file goes (quantised.safetensors)"},
    {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
    {0}};

/* Every element is looked at once: whole images, nothing computed twice. */
static void plain(hp_strategy *s) {
    s->prec = HP_PREC_FP32;
    s->strips.n = 1;
    s->strips.deep = 0;
    s->sp.halo = 1;
}

static hp_status plan_of_file(frame *f, hp_plan *plan, hp_eval_setup *under, hp_error *err) {
    const options *o = f->options;
    if (o->net || o->onnx || o->image || o->classes)
        return hp_fail(err, HP_EUSAGE,
                       "the plan says which network: leave out --net, --onnx, --image, --classes");
    hp_db db = {0};
    HP_TRY(hp_db_open(f->word[0], &db, err));
    hp_status status = hp_plan_read(f->arena, &db, plan, err);
    if (status == HP_OK) status = hp_conditions_read(f->arena, &db, plan, under, err);
    hp_db_close(&db);
    HP_TRY(status);
    plan->mode = HP_MODE_INFER;
    if (o->device) HP_TRY(hp_plan_on_device(plan, o->device, err));
    if (o->strategy) HP_TRY(hp_strategy_parse(o->strategy, &plan->strategy, err));
    return HP_OK;
}

static hp_status plan_of_options(frame *f, hp_plan *plan, hp_eval_setup *under, hp_error *err) {
    const options *o = f->options;
    const simulate_options so = {.network.net = o->net,
                                 .network.onnx = o->onnx,
                                 .network.image = o->image,
                                 .network.classes = o->classes,
                                 .step.mode = "infer",
                                 .step.batch = o->batch,
                                 .machine.device = o->device,
                                 .strategy = o->strategy ? o->strategy : "dp=1"};
    simulate_setup s;
    if (!o->net && !o->onnx)
        return hp_fail(
            err, HP_EUSAGE,
            "which network? A plan, --net or --onnx, for example: hplan quantize --net cnn --image 28 "
            "--weights cnn.safetensors --calib fashion-mnist -o q.safetensors");
    HP_TRY(simulate_prepare(f->arena, &so, &s, err));
    *plan = simulate_plan(&s, &s.curves.strategy, s.step.batch ? s.step.batch : 1);
    *under = s.eval;
    return HP_OK;
}

/* The float program that is watched, predicted and stored in the workspace. */
static hp_status make_plan(frame *f, const workspace *w, hp_plan *plan, hp_error *err) {
    const options *o = f->options;
    hp_eval_setup under;
    hp_prediction p = {0};
    HP_TRY(f->n_word ? plan_of_file(f, plan, &under, err) : plan_of_options(f, plan, &under, err));
    plain(&plan->strategy);
    plan->float_layers = NULL;
    if (o->batch) HP_TRY(hp_parse_int(o->batch, "--batch", 1, 1 << 20, &plan->batch, err));
    plan->batch = hp_strategy_batch(&plan->strategy, plan->batch);
    HP_TRY(hp_predict(f->arena, plan, &under, &p, err));
    return hp_predict_store(w->db, plan, &p, NULL, err);
}

static void pass(hp_arena *arena, cli_launch *l, const char *name, const char *value) {
    if (value) l->option[l->n_option++] = hp_arena_printf(arena, "--%s=%s", name, value);
}

static hp_status launch(frame *f, const workspace *w, const hp_plan *plan, const char *weights,
                        hp_error *err) {
    const options *o = f->options;
    int64_t threads = 1;
    if (o->threads) HP_TRY(hp_parse_int(o->threads, "--threads", 1, 4096, &threads, err));
    cli_launch l = {
        .plan = w->db, .scratch = w->dir, .ranks = hp_program_ranks(plan->program), .threads = (int)threads};
    pass(f->arena, &l, "quantise", hp_arena_printf(f->arena, "%s/quantised", w->dir));
    pass(f->arena, &l, "data", o->calib);
    pass(f->arena, &l, "init", weights);
    pass(f->arena, &l, "observer", o->observer);
    pass(f->arena, &l, "percentile", o->percentile);
    pass(f->arena, &l, "images", o->images);
    pass(f->arena, &l, "float-layers", o->float_layers);
    pass(f->arena, &l, "mean", o->mean);
    pass(f->arena, &l, "std", o->std);
    pass(f->arena, &l, "channels", o->channels);
    pass(f->arena, &l, "bands", o->bands);
    pass(f->arena, &l, "resize", o->resize);
    if (o->equalise) l.option[l.n_option++] = "--equalise";
    if (o->uncorrected) l.option[l.n_option++] = "--no-correction";
    return cli_launch_run(&l, err);
}

/* How images become pixels: as they were calibrated. */
static void add_pixels(next_command *c, const options *o) {
    next_option(c, "--data", o->calib);
    next_option(c, "--mean", o->mean);
    next_option(c, "--std", o->std);
    next_option(c, "--channels", o->channels);
    next_option(c, "--bands", o->bands);
    next_option(c, "--resize", o->resize);
}

static void add_network(hp_arena *arena, next_command *c, const options *o, const hp_plan *plan) {
    next_option(c, "--net", o->onnx ? NULL : plan->net);
    next_option(c, "--onnx", o->onnx);
    if (hp_graph_reads_ids(plan->graph)) return; /* its name says all */
    next_option(c, "--image", hp_arena_printf(arena, "%dx%d", plan->image_h, plan->image_w));
    next_option(c, "--classes", o->onnx ? NULL : hp_arena_printf(arena, "%d", plan->classes));
}

/* Suggests commands: one that shows what the integers cost in accuracy and, for a network with a name or a
 * file, one that plans with them. */
static void print_next(frame *f, const hp_plan *plan, const char *file) {
    const options *o = f->options;
    next_command eval = next_start("eval"), make = next_start("simulate"), run = next_start("run plan.db");
    if (f->n_word)
        next_word(&eval, f->word[0]);
    else
        add_network(f->arena, &eval, o, plan);
    next_option(&eval, "--device", o->device);
    next_option(&eval, "--weights", o->weights);
    next_option(&eval, "--quant", file);
    add_pixels(&eval, o);
    next_print(stdout, &eval);
    if (plan->model && !o->onnx) return;
    add_network(f->arena, &make, o, plan);
    next_option(&make, "--machine", "local");
    next_option(&make, "--device", o->device);
    next_option(&make, "--mode", "infer");
    next_option(&make, "--prec", "int8");
    next_option(&make, "--float-layers", o->float_layers);
    next_print(stdout, &make);
    next_option(&run, "--init", file);
    add_pixels(&run, o);
    next_print(stdout, &run);
}

static hp_status work(frame *f, workspace *w, hp_error *err) {
    const options *o = f->options;
    hp_plan plan;
    const char *weights = NULL;
    const run_here here = {
        .path = "the calibration", .force = true, .smaller = "give a smaller --batch or --image"};
    HP_TRY(make_plan(f, w, &plan, err));
    HP_TRY(run_here_check(f->arena, &plan, &here, err));
    HP_TRY(cli_weights_file(f->arena, cli_weights_of(o->weights, o->onnx), plan.image_h, plan.image_w, w->dir,
                            &weights, err));
    HP_TRY(launch(f, w, &plan, weights, err));
    snprintf(w->db, sizeof w->db, "%s/quantised", w->dir);
    HP_TRY(workspace_commit(w, err));
    if (o->json)
        return cli_print_json(
            json_pack("{s:i, s:s, s:s, s:s}", "schema", 1, "net", plan.net, "prec", "int8", "file", w->final),
            err);
    char plain[4096];
    printf("wrote %s\n", cli_plain(w->final, plain, sizeof plain));
    print_next(f, &plan, w->final);
    return cli_finish_stdout(err);
}

static hp_status quantize(frame *f, hp_error *err) {
    const options *o = f->options;
    workspace w;
    if (o->prec && strcmp(o->prec, "int8") != 0)
        return hp_fail(err, HP_EUNAVAIL, "--prec %.20s: this version quantises to int8", o->prec);
    if (!o->calib)
        return hp_fail(err, HP_EUSAGE,
                       "--calib: which images, like those it will see? For example: --calib fashion-mnist");
    if (!cli_weights_of(o->weights, o->onnx))
        fprintf(stderr, "hplan: note: no --weights: drawn from the plan's seed, not trained\n");
    HP_TRY(workspace_open(o->out ? o->out : "quantised.safetensors", &w, err));
    const hp_status status = work(f, &w, err);
    workspace_close(&w);
    return status;
}

int cmd_quantize(int argc, char **argv) {
    static const frame_command command = {.option = OPTIONS,
                                          .usage = "[PLAN.db]",
                                          .doc = "Calibrates a trained network on images and writes its "
                                                 "8-bit weights and scales.\vFor example: hplan "
                                                 "quantize --net resnet18 --image 64 --classes 10 --weights "
                                                 "w.safetensors --calib fashion-mnist -o "
                                                 "q.safetensors",
                                          .max_word = 1,
                                          .run = quantize};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
