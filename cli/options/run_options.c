/* run_options.c - one table: what each option of `hplan run` is, and who understands it. */
#include "cli/options/run_options.h"

#include "cli/cli.h"
#include "base/units.h"
#include "machines/device/device_kind.h"

#include <stddef.h>
#include <string.h>

typedef enum row_kind {
    OWN /* text, at `at` */,
    FLAG /* at `at` */,
    COUNT /* a number, at `at` */,
    PASS /* hplan-exec's */,
    NUMBER /* hplan-exec's, and a number */
} row_kind;

typedef struct row {
    const char *name, *arg, *doc;
    row_kind kind;
    size_t at;
    bool hidden;
} row;

#define AT(field) offsetof(run_options, field)

static const row ROWS[] = {
    {"trace", "FILE", "where to record (run.db)", OWN, AT(trace), false},
    {"no-history", NULL,
     "replace an earlier FILE of --trace instead of keeping it as FILE-1, and leave the history alone", FLAG,
     AT(no_history), false},
    {"plan", "RANK|STRATEGY", "which candidate (the recommended one)", OWN, AT(plan), false},
    {"device", HP_DEVICE_NAMES, "compute there instead", OWN, AT(device), false},
    {"launcher", "mpirun|srun|none",
     "what starts the ranks (none for one rank, srun inside Slurm, else mpirun)", OWN, AT(launcher), false},
    {"hostfile", "FILE", "nodes, for mpirun", OWN, AT(hostfile), false},
    {"threads", "T", "threads per rank (1)", COUNT, AT(threads), false},
    {"json", NULL, "one object per step on stdout, a last one with \"final\"", FLAG, AT(json), false},
    {"force", NULL, "run although the plan's machine is not here; never without its memory", FLAG, AT(force),
     false},
    {"metrics", "FILE.prom", "what the run does, for Prometheus: a text file that is replaced every second",
     OWN, AT(metrics), false},
    {"dry-run", NULL, "check everything, print what would be started, start nothing", FLAG, AT(dry_run),
     false},
    {"steps", "N", "optimiser steps (10)", NUMBER, 0, false},
    {"epochs", "N", "passes over the training data", NUMBER, 0, false},
    {"data", "DATA", "synthetic, fashion-mnist, a folder, or FILE,.. (synthetic)", PASS, 0, false},
    {"mean", "X,..", "mean of the pixels, per channel (0.5)", PASS, 0, false},
    {"std", "X,..", "standard deviation of the pixels, per channel (0.5)", PASS, 0, false},
    {"channels", "N", "read images with N channels, then fit them to the network", NUMBER, 0, false},
    {"bands", "N,..", "bands of the images that the network sees, as in 4,3,2 (docs/images.md)", PASS, 0,
     false},
    {"resize", "S", "shorter side to S pixels, then the centre", NUMBER, 0, false},
    {"no-shuffle", NULL, "samples in file order", PASS, 0, false},
    {"lr", "X", "learning rate, the highest of a schedule (sgd 0.01, adamw 0.001)", NUMBER, 0, false},
    {"lr-schedule", "constant|cosine|step|linear", "how it falls after the warm-up (constant)", PASS, 0,
     false},
    {"warmup", "N", "steps in which it rises on a line (0)", NUMBER, 0, false},
    {"min-lr", "X", "to which cosine and linear fall at the last step (0)", NUMBER, 0, false},
    {"lr-steps", "N,..", "of step: the steps at which it falls", PASS, 0, false},
    {"lr-gamma", "X", "of step: by what it falls (0.1)", NUMBER, 0, false},
    {"momentum", "X", "of sgd (0.9)", NUMBER, 0, false},
    {"betas", "B1,B2", "of adamw (0.9,0.999)", PASS, 0, false},
    {"adam-eps", "X", "of adamw (1e-8)", NUMBER, 0, false},
    {"weight-decay", "X", "weight decay (sgd 0; adamw 0.01, of matrices alone)", NUMBER, 0, false},
    {"clip-norm", "X", "gradients' norm is at most X, in plans of simulate --clip-norm (1)", NUMBER, 0,
     false},
    {"no-dropout", NULL, "keep every activation", PASS, 0, false},
    {"init", "FILE", "weights: safetensors, of hplan quantize too, or ONNX", OWN, AT(init), false},
    {"random-weights", NULL, "inference on real images without --init", FLAG, AT(random_weights), false},
    {"save", "FILE", "write the weights at the end, safetensors", PASS, 0, false},
    {"eval", NULL, "accuracy on the test split after training", PASS, 0, false},
    {"deterministic", NULL, "same plan, same bits: always so; records hashes for hplan compare --bits", PASS,
     0, false},
    {"on-nan", "stop|skip[:N]|go-on", "when a loss or gradient is not finite (stop); N skipped in a row (10)",
     PASS, 0, false},
    {"on-broken", "stop|skip[:P]",
     "when images of a folder cannot be read (stop): read all first, leave out at most P % of them (1)", PASS,
     0, false},
    {"no-bind", NULL, "ranks may use all cores: for a machine that other work shares", PASS, 0, false},
    {"quota", "SHARE:..",
     "processors of each rank, as in 1:0.5, or of all: control groups hold them to that, as if devices were "
     "slower",
     PASS, 0, false},
    {"no-gpu-mpi", NULL, "messages of GPU memory go by way of the host, though MPI would take them", PASS, 0,
     false},
    {"no-ipc", NULL, "messages between GPUs of one node go by way of the host", PASS, 0, false},
    {"no-yardsticks", NULL, "do not sample the machine's speed between steps", PASS, 0, false},
    {"checkpoint", "DIR", "save the run's state there while it goes on: a folder that all nodes share", PASS,
     0, false},
    {"every", "N|TIME", "steps, or time as in 30s, 10min, 2h, from one checkpoint to the next (10min)", PASS,
     0, false},
    {"keep", "N", "how many of them to keep (2)", NUMBER, 0, false},
    {"resume", NULL, "go on from the newest checkpoint that is whole, in this plan or another", PASS, 0,
     false},
    {"restarts", "N",
     "after a rank has died, or stopped, go on by itself from the newest checkpoint, at most N times (0)",
     COUNT, AT(restarts), false},
    {"elastic", NULL,
     "go on where nodes are lost, too: without those that do not answer, as the same kind of plan with the "
     "same batch",
     FLAG, AT(elastic), false},
    {"deadline", "S", "give up after waiting S seconds for another rank (10, or 20 times the predicted step)",
     NUMBER, 0, false},
    {"fit-here", NULL,
     "where the plan's machine is not here: the same kind of plan, shrunk to what is; the batch stays", FLAG,
     AT(fit_here), false},
    {"input", "IMAGE", "inference on one image", PASS, 0, false},
    {"heatmap", "FILE", "with --data patches:IMAGE: probabilities over the image, .npy or .tif", PASS, 0,
     false},
    {"argmax", NULL, "the most likely class instead of logits, in --output and --heatmap", PASS, 0, false},
    {"output", "FILE", "what inference gave: .npy, .json, .tif (maps), .bin", PASS, 0, false},
};

enum { N_ROW = sizeof ROWS / sizeof *ROWS, FIRST_KEY = 256 };

typedef struct parse_state {
    hp_arena *arena;
    run_options *o;
    hp_error *err;
} parse_state;

/* A run has a thread at least. */
static hp_status parse_count(const row *r, const char *arg, int64_t *count, hp_error *err) {
    char what[32];
    snprintf(what, sizeof what, "--%s", r->name);
    return hp_parse_int(arg, what, r->at == AT(threads), 4096, count, err);
}

/* hplan-exec knows its bounds; that it is none is said before anything else is looked at. */
static hp_status check_number(const row *r, const char *arg, hp_error *err) {
    char what[32];
    double ignored;
    snprintf(what, sizeof what, "--%s", r->name);
    return hp_parse_double(arg, what, -1e300, 1e300, &ignored, err);
}

static hp_status pass_on(const parse_state *s, const row *r, const char *arg) {
    run_options *o = s->o;
    if (o->n_pass == RUN_PASS) return hp_fail(s->err, HP_EUSAGE, "too many options");
    o->pass[o->n_pass++] =
        arg ? hp_arena_printf(s->arena, "--%s=%s", r->name, arg) : hp_arena_printf(s->arena, "--%s", r->name);
    return HP_OK;
}

static hp_status apply(const parse_state *s, const row *r, char *arg) {
    run_options *o = s->o;
    switch (r->kind) {
    case OWN:
        *(const char **)((char *)o + r->at) = arg;
        break;
    case FLAG:
        *(bool *)((char *)o + r->at) = true;
        break;
    case COUNT:
        return parse_count(r, arg, (int64_t *)(void *)((char *)o + r->at), s->err);
    case NUMBER:
        HP_TRY(check_number(r, arg, s->err));
        return pass_on(s, r, arg);
    case PASS:
        return pass_on(s, r, arg);
    }
    return HP_OK;
}

const char *run_options_passed(const run_options *o, const char *name) {
    const size_t n = strlen(name);
    for (int i = o->n_pass - 1; i >= 0; i--) { /* the last one counts */
        const char *rest = strncmp(o->pass[i] + 2, name, n) == 0 ? o->pass[i] + 2 + n : "?";
        if (*rest == '\0' || *rest == '=') return *rest ? rest + 1 : rest;
    }
    return NULL;
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
    parse_state *s = state->input;
    if (key == ARGP_KEY_ARG) {
        if (s->o->path) argp_error(state, "one plan at a time: '%s' is one word too many", arg);
        s->o->path = arg;
        return 0;
    }
    if (key == ARGP_KEY_NO_ARGS) argp_error(state, "which plan? For example: hplan run plan.db");
    if (key < FIRST_KEY || key >= FIRST_KEY + N_ROW) return ARGP_ERR_UNKNOWN;
    if (s->err->code == HP_OK) apply(s, &ROWS[key - FIRST_KEY], arg);
    return 0;
}

static const char ABOUT[] =
    "Executes a plan on real devices and records a trace beside its prediction.\v"
    "What --data DATA is:\n"
    "  synthetic, fashion-mnist\n"
    "  DIR with {train,test}/CLASS/*.png|jpg|tif: an image's class is its folder\n"
    "  DIR with {train,test}/{images,masks}: masks/NAME.png of images/NAME.png|jpg|tif holds the class of "
    "each pixel, 255: none\n"
    "  DIR, or a FILE, of IDX: {train,t10k}-images-idx3-ubyte and -labels-idx1-ubyte, .gz too\n"
    "  FILE,..: images without labels, for inference\n"
    "  slide:FILE[,level=N]: one level of a slide, by OpenSlide (0, the largest)\n"
    "  patches:IMAGE[,size=S][,stride=T][,tissue=F][,level=N]: patches of a large image, S pixels a side "
    "(256), every T (S), where at "
    "least F of a patch is tissue (0.5; 0: all)\n"
    "  text:PATH,..: bytes of text\n"
    "Samples: 8 bits are x/255, 16 bits x/65535, other integers x by the largest of their type, floats as "
    "they are; then (x - mean) / "
    "std. All formats: docs/images.md.";

hp_status run_options_parse(hp_arena *arena, int argc, char **argv, run_options *o, hp_error *err) {
    struct argp_option options[N_ROW + 1] = {0};
    for (int i = 0; i < N_ROW; i++)
        options[i] = (struct argp_option){
            ROWS[i].name, FIRST_KEY + i, ROWS[i].arg, ROWS[i].hidden ? OPTION_HIDDEN : 0, ROWS[i].doc, 0};
    const struct argp argp = {options, parse_option, "PLAN.db", ABOUT, 0, 0, 0};
    *o = (run_options){.trace = "run.db", .threads = 1};
    parse_state s = {arena, o, err};
    err->code = HP_OK;
    cli_parse(&argp, 0, argc, argv, &s);
    return err->code;
}
