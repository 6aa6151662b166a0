/* cmd_bench.c - how fast networks serve, by precision: MLPerf's single-stream, multi-stream and offline
 * scenarios. Every series takes its turn in every round, so that what disturbs the machine disturbs all. */
#include "cli/bench/bench_commands.h"
#include "cli/replay/cli_replay.h"
#include "cli/show/bench_show.h"
#include "cli/show/frame.h"
#include "cli/show/next.h"
#include "base/units.h"

#include <string.h>

typedef struct options {
    const char *net, *prec, *image, *scenario, *batch, *strategy, *device, *threads, *seconds, *queries,
        *rounds, *out;
    bool json;
} options;

static const frame_option OPTIONS[] = {
    {"net", 0, "LIST", offsetof(options, net), 0,
     "networks (mobilenetv2,vgg19,densenet121,resnet50,resnet101)"},
    {"prec", 0, "LIST", offsetof(options, prec), 0, "precisions (fp32,bf16,int8)"},
    {"image", 0, "S|HxW,...", offsetof(options, image), 0, "image sizes (224)"},
    {"scenario", 0, "LIST", offsetof(options, scenario), 0, "of single-stream,multi-stream,offline (all)"},
    {"batch", 0, "B", offsetof(options, batch), 0, "images at a time, offline (16 of 224x224, fewer larger)"},
    {"strategy", 0, "S", offsetof(options, strategy), 0, "how each is run (dp=1)"},
    {"device", 0, HP_DEVICE_NAMES, offsetof(options, device), 0, "what computes (cpu)"},
    {"threads", 0, "T", offsetof(options, threads), 0, "threads per rank (1)"},
    {"seconds", 0, "S", offsetof(options, seconds), 0, "time of each series, over all rounds (6)"},
    {"queries", 0, "N", offsetof(options, queries), 0, "queries of each series, instead of a time"},
    {"rounds", 0, "R", offsetof(options, rounds), 0, "turns of each series (3)"},
    {"out", 0, "FILE", offsetof(options, out), 0, "where every latency goes (bench.db)"},
    {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
    {0}};

static hp_status parse_int(const char *text, const char *what, int64_t high, int64_t *value, hp_error *err) {
    return text ? hp_parse_int(text, what, 1, high, value, err) : HP_OK;
}

static hp_status parse_lists(hp_arena *arena, const options *o, bench_setup *s, hp_error *err) {
    HP_TRY(bench_list_parse(arena, o->net ? o->net : "mobilenetv2,vgg19,densenet121,resnet50,resnet101",
                            "--net", false, &s->net, err));
    HP_TRY(bench_list_parse(arena, o->prec ? o->prec : "fp32,bf16,int8", "--prec", false, &s->prec, err));
    HP_TRY(bench_list_parse(arena, o->image ? o->image : "224", "--image", true, &s->image, err));
    return bench_list_parse(arena, o->scenario ? o->scenario : "single-stream,multi-stream,offline",
                            "--scenario", false, &s->scenario, err);
}

static hp_status parse(hp_arena *arena, const options *o, bench_setup *s, hp_error *err) {
    *s = (bench_setup){.strategy = o->strategy ? o->strategy : "dp=1",
                       .device = o->device,
                       .any_image = !o->image,
                       .threads = 1,
                       .rounds = 3,
                       .seconds = 6};
    HP_TRY(parse_lists(arena, o, s, err));
    HP_TRY(parse_int(o->batch, "--batch", 1 << 20, &s->batch, err));
    HP_TRY(parse_int(o->threads, "--threads", 4096, &s->threads, err));
    HP_TRY(parse_int(o->rounds, "--rounds", 1000, &s->rounds, err));
    HP_TRY(parse_int(o->queries, "--queries", 1 << 24, &s->queries, err));
    if (o->seconds) HP_TRY(hp_parse_double(o->seconds, "--seconds", 0.001, 1e6, &s->seconds, err));
    if (o->seconds && o->queries)
        return hp_fail(err, HP_EUSAGE, "--seconds and --queries exclude each other: give one");
    if (s->queries && s->queries < s->rounds) s->rounds = s->queries;
    if (strstr(s->strategy, "prec="))
        return hp_fail(err, HP_EUSAGE, "--strategy: give the precisions with --prec");
    return HP_OK;
}

/* Odd rounds go backwards: what drifts (heat, other users) does not favour the first. */
static hp_status measure(hp_arena *arena, const bench_setup *s, const workspace *w, bench_job *jobs, int n,
                         hp_error *err) {
    cli_progress bar;
    cli_progress_start(&bar, "turn", n * (long)s->rounds);
    hp_status status = HP_OK;
    for (int r = 0; r < s->rounds; r++)
        for (int i = 0; i < n && status == HP_OK; i++) {
            bench_job *job = &jobs[r % 2 ? n - 1 - i : i];
            cli_progress_update(&bar, (long)r * n + i, job->text);
            if (!job->why) status = bench_job_turn(arena, s, w, job, r, err);
        }
    cli_progress_end(&bar);
    return status;
}

static hp_status write_all(const char *path, const bench_job *jobs, int n, hp_error *err) {
    hp_db db = {0};
    hp_status status = hp_db_create(path, &db, err);
    for (int i = 0; i < n && status == HP_OK; i++)
        if (jobs[i].series.n_query) status = hp_bench_write(&db, &jobs[i].series, err);
    if (status == HP_OK) status = hp_db_commit(&db, err);
    hp_db_close(&db);
    return status;
}

static hp_status nothing(const bench_job *jobs, int n, hp_error *err) {
    for (int i = 0; i < n; i++)
        if (jobs[i].why) return hp_fail(err, HP_EPLAN, "%s: %s", jobs[i].text, jobs[i].why);
    return hp_fail(err, HP_EINTERNAL, "nothing was measured");
}

static hp_status measure_and_keep(hp_arena *arena, const bench_setup *s, const workspace *w, bench_job **jobs,
                                  int *n, hp_error *err) {
    HP_TRY(bench_jobs_make(arena, s, w, jobs, n, err));
    const hp_status outcome = measure(arena, s, w, *jobs, *n, err);
    bool any = false;
    for (int i = 0; i < *n; i++) any |= (*jobs)[i].series.n_query > 0;
    if (!any) return outcome == HP_OK ? nothing(*jobs, *n, err) : outcome;
    const hp_status written = write_all(w->final, *jobs, *n, outcome == HP_OK ? err : NULL);
    if (outcome == HP_OK) return written;
    if (written == HP_OK) fprintf(stderr, "hplan: what was measured up to there is in %s\n", w->final);
    return outcome;
}

static hp_status bench(frame *f, hp_error *err) {
    const options *o = f->options;
    bench_setup s;
    bench_job *jobs = NULL;
    int n = 0;
    workspace w;
    HP_TRY(parse(f->arena, o, &s, err));
    HP_TRY(workspace_open(o->out ? o->out : "bench.db", &w, err));
    const hp_status status = measure_and_keep(f->arena, &s, &w, &jobs, &n, err);
    workspace_close(&w);
    HP_TRY(status);
    if (o->json) return cli_print_json(bench_json(&s, jobs, n), err);
    bench_print(&s, jobs, n);
    next_command plot = next_start("plot precision");
    next_word(&plot, w.final);
    char plain[4096];
    printf("wrote %s\n", cli_plain(w.final, plain, sizeof plain));
    next_print(stdout, &plot);
    return cli_finish_stdout(err);
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} subcommands[] = {
#define COMMAND(name, summary)
#define SUBCOMMAND(command, name, summary) {#name, command##_##name},
#include "cli/commands.def"
#undef COMMAND
};

int cmd_bench(int argc, char **argv) {
    static const frame_command command = {
        .option = OPTIONS,
        .doc =
            "Measures latency (p50, p90, p99) and throughput of networks by precision, in the scenarios of "
            "MLPerf Inference: single-stream (one image a query), multi-stream (eight), offline "
            "(batches).\vFor example: hplan bench --net resnet50 --prec fp32,int8 --image 224,1024\n\nhplan "
            "bench comm "
            "measures communication instead (hplan bench comm --help), hplan bench replay the traffic of "
            "other "
            "networks (hplan bench replay --help), hplan bench balance ways of cutting pipelines over unlike "
            "devices "
            "(hplan bench balance --help)",
        .run = bench};
    options o = {0};
    for (size_t i = 0; argc > 1 && i < sizeof subcommands / sizeof subcommands[0]; i++) {
        char title[64];
        if (strcmp(argv[1], subcommands[i].name) != 0) continue;
        snprintf(title, sizeof title, "hplan bench %s", subcommands[i].name);
        argv[1] = title;
        return subcommands[i].run(argc - 1, argv + 1);
    }
    return frame_run(&command, &o, argc, argv);
}
