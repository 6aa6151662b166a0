/* options.c - parses the command line of hplan-exec; a table for argp. */
#include "exec/run/options.h"

#include "base/units.h"
#include "plan/store/store.h"

#include <argp.h>
#include <stddef.h>
#include <string.h>

typedef enum option_kind { TEXT, INTEGER, INTEGER32, REAL, CHANNELS, BANDS, SET, CLEAR } option_kind;

typedef struct option_row {
    const char *name, *arg, *doc;
    option_kind kind;
    size_t at;        /* offset of the field */
    double low, high; /* limits of a number */
} option_row;

#define AT(field) offsetof(hp_exec_options, field)

static const option_row ROWS[] = {
    {"rings", "DIR", "record the trace of rank N in DIR/rank-N.ring", TEXT, AT(rings), 0, 0},
    {"data", "DATA", "synthetic, fashion-mnist, a folder, or FILE,.. (synthetic)", TEXT, AT(data.name), 0, 0},
    {"init", "FILE", "initial weights, safetensors (drawn from the plan's seed)", TEXT, AT(init), 0, 0},
    {"save", "FILE", "write the weights at the end, safetensors", TEXT, AT(save), 0, 0},
    {"checkpoint", "DIR", "save the run's state there, a folder that all ranks share", TEXT,
     AT(checkpoint.dir), 0, 0},
    {"every", "N|TIME", "steps, or time as in 30s, 10min, 2h, between checkpoints (10min)", TEXT,
     AT(checkpoint.every), 0, 0},
    {"keep", "N", "newest checkpoints to keep (2)", INTEGER, AT(checkpoint.keep), 1, 1000000},
    {"resume", NULL, "go on from the newest checkpoint that is whole", SET, AT(checkpoint.resume), 0, 0},
    {"steps", "N", "optimiser steps (10)", INTEGER, AT(steps), 1, INT32_MAX},
    {"epochs", "N", "passes over the training data", INTEGER, AT(epochs), 1, INT32_MAX},
    {"threads", "T", "threads per rank (1)", INTEGER, AT(threads), 1, 4096},
    {"lr", "X", "learning rate (sgd 0.01, adamw 0.001)", TEXT, AT(rates.lr), 0, 0},
    {"momentum", "X", "of sgd (0.9)", TEXT, AT(rates.momentum), 0, 0},
    {"betas", "B1,B2", "of adamw (0.9,0.999)", TEXT, AT(rates.betas), 0, 0},
    {"adam-eps", "X", "of adamw (1e-8)", TEXT, AT(rates.eps), 0, 0},
    {"weight-decay", "X", "weight decay (sgd 0, adamw 0.01)", TEXT, AT(rates.weight_decay), 0, 0},
    {"clip-norm", "X", "norm to which gradients are clipped (1)", TEXT, AT(rates.clip_norm), 0, 0},
    {"lr-schedule", "NAME", "constant, cosine, step, linear (constant)", TEXT, AT(rates.schedule.schedule), 0,
     0},
    {"warmup", "N", "steps in which the learning rate rises (0)", TEXT, AT(rates.schedule.warmup), 0, 0},
    {"min-lr", "X", "to which cosine and linear fall (0)", TEXT, AT(rates.schedule.min_lr), 0, 0},
    {"lr-steps", "N,..", "steps at which step falls", TEXT, AT(rates.schedule.lr_steps), 0, 0},
    {"lr-gamma", "X", "by which it falls (0.1)", TEXT, AT(rates.schedule.lr_gamma), 0, 0},
    {"mean", "X,..", "mean of the pixels, per channel (0.5)", CHANNELS, AT(data.pixels.mean), 0, 0},
    {"std", "X,..", "standard deviation of the pixels, per channel (0.5)", CHANNELS, AT(data.pixels.std), 0,
     0},
    {"channels", "N", "read images with N channels, then fit them to the network", INTEGER32,
     AT(data.pixels.channels), 1, 4},
    {"bands", "N,..", "which bands of the images the network sees, from 1 on, in its channels' order", BANDS,
     AT(data.pixels), 0, 0},
    {"resize", "S", "resize the shorter side to S pixels, then crop the centre", INTEGER32,
     AT(data.pixels.resize), 1, 1 << 20},
    {"input", "IMAGE", "inference on one image", TEXT, AT(data.input), 0, 0},
    {"heatmap", "FILE", "with --data patches:IMAGE: the classes' probabilities over the image, .npy or .tif",
     TEXT, AT(output.heatmap), 0, 0},
    {"argmax", NULL, "the most likely class instead of logits, in --output and --heatmap", SET,
     AT(output.argmax), 0, 0},
    {"quantise", "FILE", "calibrate on the data, write 8-bit weights and scales", TEXT, AT(quantise.file), 0,
     0},
    {"observer", "NAME", "minmax, percentile, entropy, mse", TEXT, AT(quantise.observer), 0, 0},
    {"percentile", "P", "share of the elements that percentile keeps", REAL, AT(quantise.percentile), 50,
     100},
    {"images", "N", "number of calibration images", INTEGER, AT(quantise.images), 1, 1e12},
    {"float-layers", "LIST", "layers that stay real", TEXT, AT(quantise.float_layers), 0, 0},
    {"equalise", NULL, "first equalise the channels' weights across layers", SET, AT(quantise.equalise), 0,
     0},
    {"no-correction", NULL, "do not correct biases", CLEAR, AT(quantise.correct), 0, 0},
    {"output", "FILE", "results of inference: .npy, .json, .tif, .bin", TEXT, AT(output.file), 0, 0},
    {"no-shuffle", NULL, "samples in file order", CLEAR, AT(data.shuffle), 0, 0},
    {"no-dropout", NULL, "no dropout", CLEAR, AT(dropout), 0, 0},
    {"eval", NULL, "accuracy on the test split at the end", SET, AT(eval), 0, 0},
    {"deterministic", NULL, "results always are; records hashes of the weights", SET, AT(deterministic), 0,
     0},
    {"on-nan", "stop|skip[:N]|go-on", "when a loss or gradient is not finite (stop); N in a row (10)", TEXT,
     AT(nan.action), 0, 0},
    {"on-broken", "stop|skip[:P]", "when images of a folder cannot be read (stop); P % of them at most (1)",
     TEXT, AT(data.on_broken), 0, 0},
    {"no-bind", NULL, "do not bind ranks to cores", CLEAR, AT(machine.bind), 0, 0},
    {"quota", "SHARE:..", "of each rank, in processors: a control group holds it to that", TEXT,
     AT(machine.quota), 0, 0},
    {"no-gpu-mpi", NULL, "send messages of GPU memory through the host, though MPI would take them", CLEAR,
     AT(machine.gpu_mpi), 0, 0},
    {"no-ipc", NULL, "send messages between GPUs of one node through the host", CLEAR, AT(machine.ipc), 0, 0},
    {"no-yardsticks", NULL, "do not sample the machine's speed between steps", CLEAR, AT(machine.yardsticks),
     0, 0},
    {"check-options", NULL, "only say what is wrong with the options, on stdout", SET, AT(check_options), 0,
     0},
    {"check-speed", NULL, "no plan: time the yardsticks, print how fast this machine is now", SET,
     AT(speed.check), 0, 0},
    {"seconds", "S", "how long --check-speed takes (2)", REAL, AT(speed.seconds), 0.01, 3600},
    {"bench-comm", "SERIES", "no plan: time collectives and messages, as in allreduce:own.ring,sendrecv:mpi",
     TEXT, AT(bench.series), 0, 0},
    {"bench-from", "B", "bytes of the smallest size (8)", INTEGER, AT(bench.from_bytes), 1, 1e15},
    {"bench-to", "B", "bytes of the largest (16777216)", INTEGER, AT(bench.to_bytes), 1, 1e15},
    {"bench-factor", "F", "from one size to the next (4)", INTEGER, AT(bench.factor), 2, 1e9},
    {"bench-iterations", "N", "of each turn (20)", INTEGER, AT(bench.iterations), 1, 1e6},
    {"bench-warmup", "N", "iterations that come before each turn (3)", INTEGER, AT(bench.warmup), 0, 1e6},
    {"bench-turns", "N", "turns of each series (3)", INTEGER, AT(bench.turns), 1, 1000},
    {"bench-dtype", "T", "type of the elements (f32)", TEXT, AT(bench.dtype), 0, 0},
    {"bench-reduction", "R", "how they are added up (sum)", TEXT, AT(bench.reduction), 0, 0},
    {"bench-root", "R", "rank (0)", INTEGER32, AT(bench.root), 0, INT32_MAX},
    {"bench-per-node", "N", "ranks on each node (all)", INTEGER32, AT(bench.per_node), 0, INT32_MAX},
    {"deadline", "S", "fail after waiting S seconds", REAL, AT(deadline_s), 0.1, 1e9},
};

enum { N_ROW = sizeof ROWS / sizeof *ROWS, FIRST_KEY = 256 };

static hp_status set_option(const option_row *row, hp_exec_options *o, const char *arg, hp_error *err) {
    void *field = (char *)o + row->at;
    int64_t whole = 0;
    char what[32];
    snprintf(what, sizeof what, "--%s", row->name);
    switch (row->kind) {
    case TEXT:
        *(const char **)field = arg;
        return HP_OK;
    case SET:
        *(bool *)field = true;
        return HP_OK;
    case CLEAR:
        *(bool *)field = false;
        return HP_OK;
    case REAL:
        return hp_parse_double(arg, what, row->low, row->high, field, err);
    case CHANNELS:
        return hp_data_parse_channels(arg, what, field, err);
    case BANDS:
        return hp_data_parse_bands(arg, field, err);
    case INTEGER:
        return hp_parse_int(arg, what, (int64_t)row->low, (int64_t)row->high, field, err);
    case INTEGER32:
        HP_TRY(hp_parse_int(arg, what, (int64_t)row->low, (int64_t)row->high, &whole, err));
        *(int32_t *)field = (int32_t)whole;
        return HP_OK;
    }
    return HP_OK;
}

typedef struct options_state {
    hp_exec_options *o;
    hp_error *err;
} options_state;

static error_t parse_option(int key, char *arg, struct argp_state *state) {
    options_state *s = state->input;
    if (key == ARGP_KEY_ARG && !s->o->plan) {
        s->o->plan = arg;
        return 0;
    }
    if (key < FIRST_KEY || key >= FIRST_KEY + N_ROW) return ARGP_ERR_UNKNOWN;
    return set_option(&ROWS[key - FIRST_KEY], s->o, arg, s->err) == HP_OK ? 0 : EINVAL;
}

/* "100": steps; "30s", "10min", "2h". */
static hp_status parse_every(hp_exec_options *o, hp_error *err) {
    static const struct {
        const char *name;
        double s;
    } UNITS[] = {{"s", 1}, {"min", 60}, {"h", 3600}};
    const char *text = o->checkpoint.every ? o->checkpoint.every : "10min";
    const size_t digits = strspn(text, "0123456789.");
    char number[32] = "";
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS && digits < sizeof number; i++) {
        if (strcmp(text + digits, UNITS[i].name) != 0) continue;
        memcpy(number, text, digits);
        HP_TRY(hp_parse_double(number, "--every", 1e-3, 1e9, &o->checkpoint.every_s, err));
        o->checkpoint.every_s *= UNITS[i].s;
        return HP_OK;
    }
    if (text[digits] == '\0')
        return hp_parse_int(text, "--every", 1, INT32_MAX, &o->checkpoint.every_steps, err);
    return hp_fail(err, HP_EUSAGE, "--every %s: give steps (100) or a time (30s, 10min, 2h)", text);
}

static hp_status check_checkpoint(hp_exec_options *o, hp_error *err) {
    if (o->checkpoint.dir && *o->checkpoint.dir) return parse_every(o, err);
    if (!o->checkpoint.dir && !o->checkpoint.resume && !o->checkpoint.every && !o->checkpoint.keep)
        return HP_OK;
    return hp_fail(err, HP_EUSAGE,
                   "--every, --keep and --resume are about checkpoints: which folder? --checkpoint DIR");
}

/* 10 is a choice: an input that is broken is skipped, and a training that diverged soon ends. */
enum { SKIPS_IN_A_ROW = 10 };

static hp_status parse_on_nan(hp_exec_options *o, hp_error *err) {
    o->nan.goes_on = strcmp(o->nan.action, "go-on") == 0;
    if (o->nan.goes_on || strcmp(o->nan.action, "stop") == 0) return HP_OK;
    o->nan.skips = SKIPS_IN_A_ROW;
    if (strcmp(o->nan.action, "skip") == 0) return HP_OK;
    if (strncmp(o->nan.action, "skip:", 5) == 0)
        return hp_parse_int(o->nan.action + 5, "--on-nan skip:N", 1, 1 << 30, &o->nan.skips, err);
    return hp_fail(err, HP_EUSAGE, "--on-nan %.40s: stop, skip, skip:N or go-on", o->nan.action);
}

/* 1 %, a choice: some files of a large collection are broken; where more are, something else is wrong. */
static hp_status parse_on_broken(hp_exec_options *o, hp_error *err) {
    o->data.broken_percent = -1;
    if (strcmp(o->data.on_broken, "stop") == 0) return HP_OK;
    o->data.broken_percent = 1;
    if (strcmp(o->data.on_broken, "skip") == 0) return HP_OK;
    if (strncmp(o->data.on_broken, "skip:", 5) == 0)
        return hp_parse_double(o->data.on_broken + 5, "--on-broken skip:P", 0, 100, &o->data.broken_percent,
                               err);
    return hp_fail(err, HP_EUSAGE, "--on-broken %.40s: stop, skip or skip:P", o->data.on_broken);
}

hp_status hp_exec_options_parse(int argc, char **argv, hp_exec_options *o, hp_error *err) {
    struct argp_option options[N_ROW + 1] = {0};
    for (int i = 0; i < N_ROW; i++)
        options[i] = (struct argp_option){ROWS[i].name, FIRST_KEY + i, ROWS[i].arg, 0, ROWS[i].doc, 0};
    const struct argp argp = {
        options,   parse_option,
        "PLAN.db", "Runs one rank of a plan. Started by `hplan run`, through mpirun or alone.",
        0,         0,
        0};
    *o = (hp_exec_options){.data.name = "synthetic",
                           .threads = 1,
                           .speed.seconds = 2,
                           .data.shuffle = true,
                           .quantise.correct = true,
                           .nan.action = "stop",
                           .data.on_broken = "stop",
                           .quantise.observer = "mse",
                           .quantise.percentile = 99.99,
                           .quantise.images = 256,
                           .dropout = true,
                           .machine.gpu_mpi = true,
                           .machine.ipc = true,
                           .machine.yardsticks = true,
                           .machine.bind = true,
                           .bench = {.dtype = "f32",
                                     .reduction = "sum",
                                     .from_bytes = 8,
                                     .to_bytes = 16 << 20,
                                     .factor = 4,
                                     .iterations = 20,
                                     .warmup = 3,
                                     .turns = 3},
                           .data.pixels = hp_data_options_default()};
    options_state state = {o, err};
    argp_err_exit_status = HP_EUSAGE;
    err->code = HP_OK;
    if (argp_parse(&argp, argc, argv, 0, NULL, &state) != 0)
        return err->code != HP_OK ? err->code
                                  : hp_fail(err, HP_EUSAGE, "wrong option; see hplan-exec --help");
    if (!o->plan && (o->check_options || (!o->speed.check && !o->bench.series)))
        return hp_fail(err, HP_EUSAGE, "which plan? usage: hplan-exec PLAN.db");
    if (o->steps && o->epochs)
        return hp_fail(err, HP_EUSAGE, "--steps and --epochs exclude each other: give one");
    HP_TRY(parse_on_nan(o, err));
    HP_TRY(parse_on_broken(o, err));
    HP_TRY(check_checkpoint(o, err));
    if (!o->checkpoint.keep) o->checkpoint.keep = 2;
    return HP_OK;
}

/* --- with the plan --- */

static hp_status check_with_plan(hp_arena *arena, hp_db *db, const hp_exec_options *o, hp_error *err) {
    hp_plan plan;
    hp_rates ignored;
    hp_data_options pixels = o->data.pixels;
    HP_TRY(hp_plan_read(arena, db, &plan, err));
    if (plan.mode == HP_MODE_TRAIN) HP_TRY(hp_rates_parse(&o->rates, plan.graph, &ignored, err));
    pixels.name = o->data.name;
    pixels.image_h = plan.image_h, pixels.image_w = plan.image_w, pixels.image_c = plan.graph->image_c;
    pixels.label_h = pixels.label_w = 1;
    pixels.classes = plan.classes;
    return hp_data_options_check(&pixels, err);
}

hp_status hp_exec_options_check(const hp_exec_options *o, hp_error *err) {
    hp_db db = {0};
    HP_TRY(hp_db_open(o->plan, &db, err));
    hp_arena *arena = hp_arena_new();
    const hp_status s = check_with_plan(arena, &db, o, err);
    hp_arena_free(arena);
    hp_db_close(&db);
    return s;
}
