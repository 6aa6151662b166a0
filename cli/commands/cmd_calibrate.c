/* cmd_calibrate.c - measures this machine with task programs run by hplan-exec, and writes a cost table. */
#include "cli/calibrate/calibrate_held.h"
#include "cli/calibrate/calibrate_import.h"
#include "cli/calibrate/calibrate_jobs.h"
#include "cli/calibrate/calibrate_quick.h"
#include "cli/calibrate/calibrate_store.h"
#include "cli/show/calibrate_show.h"
#include "cli/show/frame.h"
#include "cli/show/next.h"
#include "cli/commands/local_gpu.h"
#include "cli/launch/workspace.h"
#include "costmodels/sample_store.h"
#include "base/host.h"
#include "base/units.h"
#include "traces/outfile.h"
#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct options {
    bool compute, comm, json;
    const char *device, *net, *image, *batch, *gpus, *mode, *prec, *seconds, *out, *begin, *end, *factor,
        *rounds, *warmup, *from, *hostfile;
    calibrate_import_options import;
} options;

static const double LARGE_ERROR = 0.1; /* relative error of the best candidates that is worth a line */
static const frame_option OPTIONS[] = {
    {"compute", 0, NULL, offsetof(options, compute), 0, "compute tasks only"},
    {"comm", 0, NULL, offsetof(options, comm), 0, "messages and collectives only"},
    {"device", 0, HP_DEVICE_NAMES, offsetof(options, device), 0, "what to measure: cores, or GPUs (cpu)"},
    {"net", 0, "NAME", offsetof(options, net), 0,
     "what simulate --net NAME needs, the most used and uncertain first"},
    {"image", 0, "N|HxW", offsetof(options, image), 0, "at this image size (224)"},
    {"batch", 0, "N", offsetof(options, batch), 0,
     "and this batch (several); without --net: at most so many images per rank (64)"},
    {"gpus", 0, "N", offsetof(options, gpus), 0, "and on so many devices (all)"},
    {"mode", 0, "train|infer", offsetof(options, mode), 0, "in this mode (train)"},
    {"prec", 0, "LIST", offsetof(options, prec), 0, "in these precisions (fp32)"},
    {"seconds", 0, "N", offsetof(options, seconds), 0,
     "at most so long; with --net 60, else all is measured"},
    {"output", 'o', "FILE.cost", offsetof(options, out), 0,
     "where to write the table (the default of this machine)"},
    {"begin", 'b', "BYTES", offsetof(options, begin), 0, "smallest message (256)"},
    {"end", 'e', "BYTES", offsetof(options, end), 0, "largest message (64Mi)"},
    {"factor", 'f', "N", offsetof(options, factor), 0, "from one size to the next (4)"},
    {"iters", 'n', "N", offsetof(options, rounds), 0, "rounds of each size (20)"},
    {"warmup", 'w', "N", offsetof(options, warmup), 0, "passes over the sizes before (1)"},
    {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object on stdout"},
    {"from", 0, "RUN.db", offsetof(options, from), 0, "measure nothing: add a run of hplan run to the table"},
    {"import", 0, "FILE...", offsetof(options, import.first), 0,
     "measure nothing: add what nccl-tests or the OSU micro-benchmarks printed to the table"},
    {"machine", 0, "NAME|FILE", offsetof(options, import.machine), 0,
     "with --comm and --hostfile: the cluster; with --import: what was measured (this machine)"},
    {"hostfile", 0, "FILE", offsetof(options, hostfile), 0,
     "with --comm and --machine: its nodes, as mpirun reads them"},
    {"ranks", 0, "N", offsetof(options, import.ranks), 0,
     "with --import: ranks, where the text does not say it"},
    {"per-node", 0, "N", offsetof(options, import.per_node), 0, "with --import: ranks on each node"},
    {"op", 0, "NAME", offsetof(options, import.op), 0,
     "with --import: operation, where the text does not say it: all_reduce"},
    {"algorithm", 0, "NAME", offsetof(options, import.algorithm), 0,
     "with --import: that the library was made to use (NCCL_ALGO, coll_tuned_..._algorithm): ring"},
    {0}};

typedef struct setup {
    hp_machine machine;
    bench_sizes sizes;
    calibrate_jobs jobs;
    bool quick;            /* what one search needs, of cores */
    double seconds;        /* 0: no limit */
    calibrate_store store; /* the store of samples */
    char path[4096];
    local_gpu gpu;        /* where the device is one */
    const char *hostfile; /* nodes of a cluster; NULL: this host */
    bool partial;         /* not everything is measured: keep the table's other rows */
} setup;

/* Time for each size in a pass between nodes, roughly. */
#define SECONDS_OF_A_SIZE 0.1

static hp_status parse_sizes(const options *o, setup *s, int64_t *passes, hp_error *err) {
    int64_t begin = 0, end = 0, factor = 0, rounds = 0, most = BENCH_MOST_BYTES;
    HP_TRY(hp_parse_bytes(o->begin ? o->begin : "256", &begin, err));
    HP_TRY(hp_parse_bytes(o->end ? o->end : "64Mi", &end, err));
    HP_TRY(hp_parse_int(o->factor ? o->factor : "4", "-f", 2, 1 << 20, &factor, err));
    HP_TRY(hp_parse_int(o->rounds ? o->rounds : "20", "-n", 1, 10000, &rounds, err));
    HP_TRY(hp_parse_int(o->warmup ? o->warmup : "1", "-w", 0, 1000, passes, err));
    if (s->machine.nodes > 1) most = (int64_t)(SECONDS_OF_A_SIZE * s->machine.inter.bytes_per_s);
    if (s->machine.nodes > 1 && !o->end) end = most < 1 << 20 ? 1 << 20 : most < end ? most : end;
    if (end < begin)
        return hp_fail(err, HP_EUSAGE, "-e %s is smaller than -b %s", o->end, o->begin ? o->begin : "256");
    if (end > INT64_C(1) << 32)
        return hp_fail(err, HP_EUSAGE, "-e %s: messages of at most 4Gi are measured", o->end);
    s->sizes = bench_sizes_make(begin, end, factor, (int)rounds, most);
    *passes += 2; /* at least two are counted */
    return HP_OK;
}

/* The folders of the default path; a path that the user gave must exist. Checked before minutes of measuring.
 */
static hp_status ready_folder(const char *path, bool make, hp_error *err) {
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); make && slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(folder, 0777); /* one that exists is fine; what fails shows below */
        *slash = '/';
    }
    char *last = strrchr(folder, '/');
    if (last) last[last == folder] = 0;
    if (access(last ? folder : ".", W_OK) != 0)
        return hp_fail(err, HP_ECREATE, "cannot write %s: %s; choose another place with -o", path,
                       strerror(errno));
    return HP_OK;
}

/* The machine, and where its table goes. */
static hp_status choose_device(const options *o, setup *s, hp_error *err) {
    s->jobs.device = &hp_devices[HP_DEVICE_CPU];
    if (o->device) HP_TRY(hp_device_find(o->device, &s->jobs.device, err));
    const bool gpus = hp_device_on_gpu(s->jobs.device);
    if (!gpus && s->jobs.device->kind != HP_DEVICE_CPU)
        return hp_fail(err, HP_EUSAGE, "--device %s is not for measuring: its times stand for no machine's",
                       s->jobs.device->name);
    hp_cost_machine_path(s->jobs.device->machine, s->path, sizeof s->path);
    if (o->out) snprintf(s->path, sizeof s->path, "%s", o->out);
    if (gpus) HP_TRY(local_gpu_find(&s->gpu, err));
    if (o->import.machine && (!o->hostfile || !o->comm || o->net || !o->out))
        return hp_fail(err, HP_EUSAGE,
                       "--machine is for measuring what is between nodes: calibrate --comm --machine FILE "
                       "--hostfile FILE -o FILE.cost");
    if (o->import.machine)
        return calibrate_cluster(s->jobs.device, o->import.machine, o->hostfile, &s->machine, err);
    if (o->hostfile)
        return hp_fail(err, HP_EUSAGE,
                       "--hostfile needs --machine: what are these nodes, and what is between them?");
    if (!gpus) return hp_machine_load("local", &s->machine, err);
    return hp_machine_of_gpus(s->jobs.device, &s->gpu.gpu, &s->machine, err);
}

static hp_status prepare(hp_arena *arena, const options *o, setup *s, hp_error *err) {
    int h = 224, w = 224;
    int64_t passes = 0;
    HP_TRY(choose_device(o, s, err));
    s->hostfile = o->hostfile;
    HP_TRY(parse_sizes(o, s, &passes, err));
    if (o->image) HP_TRY(cli_parse_image(o->image, &h, &w, err));
    HP_TRY(hp_parse_int(o->batch ? o->batch : "64", "--batch", 1, 1 << 20, &s->jobs.most_images, err));
    const char *const of_net[][2] = {
        {o->image, "--image"}, {o->gpus, "--gpus"}, {o->mode, "--mode"}, {o->prec, "--prec"}};
    for (size_t i = 0; i < sizeof of_net / sizeof *of_net; i++)
        if (of_net[i][0] && !o->net)
            return hp_fail(err, HP_EUSAGE, "%s needs --net: which network?", of_net[i][1]);
    HP_TRY(ready_folder(s->path, !o->out, err));
    const bool all = o->compute == o->comm && !o->net;
    s->partial = !all || o->from;
    if (all || o->comm) calibrate_add_comm(&s->machine, passes, o->comm, &s->jobs);
    s->quick = o->net && s->jobs.device->kind == HP_DEVICE_CPU;
    s->seconds = s->quick ? 60 : 0;
    if (o->seconds) HP_TRY(hp_parse_double(o->seconds, "--seconds", 1e-3, 1e6, &s->seconds, err));
    if (s->quick) {
        if (!o->comm && o->compute == o->comm) calibrate_add_comm(&s->machine, passes, false, &s->jobs);
        return HP_OK;
    }
    if (all || o->compute || o->net) {
        HP_TRY(calibrate_add_nets(arena, &s->machine, o->net, h, w, &s->jobs, err));
        HP_TRY(calibrate_add_inference(arena, &s->machine, o->net, h, w, &s->jobs, err));
    }
    if (s->jobs.n == 0)
        return hp_fail(err, HP_EUNAVAIL, "one core exchanges no messages: calibrate --compute");
    return HP_OK;
}

/* hplan-exec's lines are not wanted here. */
static hp_status write_plan(workspace *w, const hp_plan *plan, hp_error *err) {
    hp_db db = {0};
    hp_status s = hp_db_create(w->db, &db, err);
    if (s == HP_OK) s = hp_plan_write(&db, plan, err);
    if (s == HP_OK) s = hp_db_commit(&db, err);
    hp_db_close(&db);
    return s;
}

/* The job's name; a strategy's begins with its network and image size. */
static const char *name_of(hp_arena *arena, const calibrate_job *job) {
    if (!job->strategy) return job->text;
    return hp_arena_printf(arena, "%.24s %dx%d %s", job->net, job->image_h, job->image_w, job->text);
}

/* What is done with an executed run. */
typedef struct run_use {
    void *self;
    hp_status (*run)(void *self, const char *name, hp_db *db, hp_error *err);
} run_use;

static hp_status run_in(workspace *w, hp_arena *arena, const setup *s, const calibrate_job *job,
                        const run_use *use, hp_error *err) {
    hp_plan plan;
    HP_TRY(calibrate_plan(arena, &s->machine, s->jobs.device, job, &s->sizes, &plan, err));
    HP_TRY(write_plan(w, &plan, err));
    cli_launch l = {.threads = 1, .hostfile = s->hostfile};
    l.option[l.n_option++] = hp_arena_printf(arena, "--steps=%lld", (long long)job->steps);
    /* the weights stay as drawn: no number overflows */
    if (plan.mode == HP_MODE_TRAIN) l.option[l.n_option++] = "--lr=0";
    bool recorded = false;
    HP_TRY(workspace_run(w, &plan, &l, &recorded, err));
    hp_db db = {0};
    hp_status status = hp_db_open(w->db, &db, err);
    if (status == HP_OK) status = use->run(use->self, name_of(arena, job), &db, err);
    hp_db_close(&db);
    return status;
}

static hp_status execute_job(const setup *s, const calibrate_job *job, const run_use *use, hp_error *err) {
    const char *tmp = getenv("TMPDIR");
    char name[4096];
    snprintf(name, sizeof name, "%s/hplan-calibrate", tmp && tmp[0] ? tmp : "/tmp");
    hp_arena *arena = hp_arena_new();
    workspace w = {.dir = ""};
    hp_status status = workspace_open(name, &w, err);
    if (status == HP_OK) status = run_in(&w, arena, s, job, use, err);
    workspace_close(&w);
    hp_arena_free(arena);
    return status == HP_OK ? HP_OK : hp_fail_in(err, job->text);
}

typedef struct kept {
    const setup *setup;
    hp_calibration *calibration;
} kept;

/* Uses the run's samples, and keeps them. */
static hp_status keep_samples(void *self, const char *name, hp_db *db, hp_error *err) {
    const kept *k = self;
    HP_TRY(hp_calibration_add(k->calibration, name, time(NULL), db, err));
    return hp_sample_store_append(k->setup->store.path, k->setup->store.processor, k->calibration, err);
}

static hp_status run_job(const setup *s, const calibrate_job *job, hp_calibration *c, hp_error *err) {
    kept k = {s, c};
    return execute_job(s, job, &(run_use){&k, keep_samples}, err);
}

/* "resnet18 ...; 12 of 148 runs, 3 min left". */
static void show_job(cli_progress *bar, const setup *s, int i, int done, double spent_s) {
    char text[200];
    const double left_s = done ? spent_s / done * (s->jobs.n - i) : 0;
    const double limited_s = s->seconds > 0 ? fmin(left_s, fmax(0, s->seconds - spent_s)) : left_s;
    if (done && limited_s >= 90)
        snprintf(text, sizeof text, "%s; %.0f min left", s->jobs.job[i].text, ceil(limited_s / 60));
    else if (done)
        snprintf(text, sizeof text, "%s; %.0f s left", s->jobs.job[i].text, limited_s);
    else
        snprintf(text, sizeof text, "%s", s->jobs.job[i].text);
    cli_progress_update(bar, i, text);
}

/* Runs the jobs that have not run since this calibration began, possibly in an earlier process. */
static hp_status run_jobs(const setup *s, hp_calibration *c, calibrate_outcome *out, hp_error *err) {
    const double start_s = hp_now_s();
    cli_progress bar;
    cli_progress_start(&bar, "run", s->jobs.n);
    hp_status status = HP_OK;
    out->finished = true;
    for (int i = 0; i < s->jobs.n && status == HP_OK; i++) {
        const double spent_s = hp_now_s() - start_s;
        if (hp_calibration_has(c, s->jobs.job[i].text, s->store.since_s)) continue;
        out->finished = s->seconds <= 0 || spent_s < s->seconds || out->runs == 0;
        if (!out->finished) break;
        show_job(&bar, s, i, out->runs, spent_s);
        status = run_job(s, &s->jobs.job[i], c, err);
        out->runs += status == HP_OK;
    }
    cli_progress_end(&bar);
    if (status == HP_OK && out->finished) status = hp_sample_store_end(s->store.path, err);
    return status;
}

/* Beside the table, "x.machine" of "x.cost": what --machine takes. */
static const char *machine_path(hp_arena *arena, const setup *s) {
    const size_t n = strlen(s->path);
    const bool suffix = n > 5 && strcmp(s->path + n - 5, ".cost") == 0;
    return hp_arena_printf(arena, "%.*s.machine", (int)(suffix ? n - 5 : n), s->path);
}

static hp_status write_machine(hp_arena *arena, const setup *s, hp_error *err) {
    const char *path = machine_path(arena, s), *text = hp_machine_text(arena, &s->machine);
    hp_outfile o;
    HP_TRY(hp_outfile_open(path, &o, err));
    fputs(text, o.f);
    return hp_outfile_commit(&o, err);
}

/* Makes the table from everything measured so far. */
static hp_status make_table(hp_arena *arena, const setup *s, hp_calibration *c, hp_cost_table **t,
                            hp_error *err) {
    hp_cost_table *before = NULL;
    char date[16];
    const time_t now = time(NULL);
    struct tm day;
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &day));
    if (s->partial && access(s->path, R_OK) == 0)
        HP_TRY(hp_cost_load(arena, s->path, &s->machine, &before, err));
    HP_TRY(hp_calibration_table(c, before, date, t, err));
    hp_host_processor((*t)->processor, sizeof(*t)->processor);
    return HP_OK;
}

static hp_status write_table(hp_arena *arena, const setup *s, hp_calibration *c, hp_cost_table **t,
                             hp_error *err) {
    HP_TRY(make_table(arena, s, c, t, err));
    if (s->gpu.gpu.count == 0) return hp_rows_write(*t, s->path, err);
    snprintf((*t)->driver, sizeof(*t)->driver, "%s", s->gpu.driver);
    snprintf((*t)->status, sizeof(*t)->status, "%s",
             hp_gpu_statuses[s->gpu.gpu.count > 1 || s->hostfile ? 2 : 1]);
    HP_TRY(hp_rows_write(*t, s->path, err));
    return s->hostfile ? HP_OK : write_machine(arena, s, err);
}

/* A plan for what was measured, with what was measured. */
static void print_next(hp_arena *arena, const options *o, const setup *s) {
    const bool gpus = s->gpu.gpu.count > 0;
    next_command c = next_start("simulate");
    next_option(&c, "--net", o->net);
    next_option(&c, "--image", o->image);
    next_option(&c, "--batch", o->net ? o->batch : NULL);
    next_option(&c, "--gpus", o->net ? o->gpus : NULL);
    next_option(&c, "--mode", o->net ? o->mode : NULL);
    next_option(&c, "--prec", o->net ? o->prec : NULL);
    next_option(&c, "--device", gpus ? s->jobs.device->name : NULL);
    next_option(&c, "--machine",
                o->import.machine ? o->import.machine
                : gpus && o->out  ? machine_path(arena, s)
                                  : s->jobs.device->machine);
    next_option(&c, "--cost", o->out);
    next_print(stdout, &c);
}

/* --- what one search needs --- */

typedef struct quick {
    hp_arena *arena;
    const setup *setup;
    const simulate_setup *search;
    hp_calibration *calibration;
} quick;

static hp_status quick_run(void *self, const calibrate_job *job, hp_error *err) {
    const quick *q = self;
    return run_job(q->setup, job, q->calibration, err);
}

static hp_status quick_table(void *self, hp_cost_table **t, hp_error *err) {
    const quick *q = self;
    HP_TRY(make_table(q->arena, q->setup, q->calibration, t, err));
    (*t)->base = q->search->costs.table->base ? q->search->costs.table->base
                                              : q->search->costs.table; /* the shipped rows */
    return HP_OK;
}

/* A run that is held against its prediction, and feeds no row. */
typedef struct held {
    const quick *quick;
    const calibrate_job *job;
} held;

static hp_status hold(void *self, const char *name, hp_db *db, hp_error *err) {
    const held *h = self;
    const quick *q = h->quick;
    hp_cost_table *t = NULL;
    hp_held measured;
    bool undisturbed;
    HP_TRY(quick_table((void *)q, &t, err));
    HP_TRY(calibrate_held_error(q->arena, q->search, t, q->calibration, h->job, db, &measured, &undisturbed,
                                err));
    if (!undisturbed) return HP_OK;
    hp_calibration_hold(q->calibration, measured);
    return hp_sample_store_hold(q->setup->store.path, q->setup->store.processor, name, time(NULL), measured,
                                err);
}

static hp_status quick_hold(void *self, const calibrate_job *job, hp_error *err) {
    const quick *q = self;
    held h = {q, job};
    return execute_job(q->setup, job, &(run_use){&h, hold}, err);
}

/* Searches as `hplan simulate` with the same options would. */
static hp_status run_quick(hp_arena *arena, const options *o, setup *s, hp_calibration *c,
                           calibrate_outcome *out, hp_error *err) {
    const simulate_options wanted = {.network = {.net = o->net, .image = o->image, .prec = o->prec},
                                     .step = {.batch = o->batch, .mode = o->mode},
                                     .machine = {.gpus = o->gpus, .name = s->jobs.device->machine},
                                     .costs.table = access(s->path, R_OK) == 0 ? s->path : NULL};
    simulate_setup *search = HP_NEW(arena, simulate_setup, 1);
    quick q = {arena, s, search, c};
    const calibrate_measure measure = {&q, quick_run, quick_table, quick_hold};
    HP_TRY(simulate_prepare(arena, &wanted, search, err));
    if (s->jobs.n > 0 && !o->end) s->sizes = bench_sizes_make(256, 4 << 20, 4, 20, BENCH_MOST_BYTES);
    return calibrate_quick(arena, search, &s->jobs, s->seconds, &measure, out, err);
}

/* --- the command --- */

/* Identifies a calibration, so that only the same one is continued. */
static const char *jobs_text(hp_arena *arena, const options *o, const setup *s) {
    if (s->quick || o->from) return "";
    return hp_arena_printf(arena, "%s %s %s %s %s %s %s", o->compute ? "compute" : "", o->comm ? "comm" : "",
                           o->net ? o->net : "", o->image ? o->image : "", o->batch ? o->batch : "",
                           o->end ? o->end : "", o->import.machine ? s->machine.name : "");
}

static bool was_stopped(hp_status s) {
    return s == (hp_status)(128 + SIGINT) || s == (hp_status)(128 + SIGTERM);
}

static hp_status measure(frame *f, setup *s, hp_calibration *c, calibrate_outcome *out, hp_error *err) {
    const options *o = f->options;
    *out = (calibrate_outcome){.runs = 0};
    if (o->from) {
        out->runs = 1, out->finished = true;
        return calibrate_store_take(&s->store, o->from, c, err);
    }
    return s->quick ? run_quick(f->arena, o, s, c, out, err) : run_jobs(s, c, out, err);
}

static hp_status print(frame *f, const setup *s, const hp_cost_table *t, const calibrate_outcome *out,
                       double elapsed_s, hp_error *err) {
    const options *o = f->options;
    if (o->json) return cli_print_json(calibrate_json(t, s->path, elapsed_s, out->runs), err);
    calibrate_print(t);
    char plain[4096];
    printf("\n%d runs in %.0f s, wrote %s\n", out->runs, elapsed_s, cli_plain(s->path, plain, sizeof plain));
    if (!out->finished && !s->quick)
        printf("not all was measured: hplan calibrate goes on where this one stopped\n");
    if (!out->finished && s->quick && out->error > LARGE_ERROR)
        printf("the best candidates are known to about %.0f %% when the seconds were over: more of them "
               "(--seconds) measure more\n",
               100 * out->error);
    print_next(f->arena, o, s);
    return cli_finish_stdout(err);
}

static hp_status import(frame *f, hp_error *err) {
    const options *o = f->options;
    setup *s = HP_NEW(f->arena, setup, 1);
    calibrate_import_options i = o->import;
    i.more = f->word, i.n_more = f->n_word;
    i.out = o->out, i.json = o->json;
    i.here = &s->machine, i.here_path = s->path;
    if (!i.machine) HP_TRY(choose_device(o, s, err));
    if (!i.machine) HP_TRY(ready_folder(s->path, !o->out, err));
    return calibrate_import(f->arena, &i, err);
}

static hp_status calibrate(frame *f, hp_error *err) {
    const options *o = f->options;
    HP_TRY(calibrate_import_check(&o->import, f->n_word ? f->word[0] : NULL, err));
    if (o->import.first) return import(f, err);
    const double start_s = hp_now_s();
    setup *s = HP_NEW(f->arena, setup, 1);
    hp_cost_table *t = NULL;
    calibrate_outcome outcome;
    HP_TRY(prepare(f->arena, o, s, err));
    hp_calibration *c = hp_calibration_new(f->arena, &s->machine);
    HP_TRY(calibrate_store_open(&s->store, s->path, s->gpu.gpu.count ? s->gpu.gpu.name : "",
                                jobs_text(f->arena, o, s), c, err));
    const hp_status status = measure(f, s, c, &outcome, err);
    if (was_stopped(status) && outcome.runs > 0) { /* what was measured is of use */
        hp_error ignored;
        if (write_table(f->arena, s, c, &t, &ignored) == HP_OK)
            fprintf(stderr, "stopped after %d runs, wrote %s; hplan calibrate goes on\n", outcome.runs,
                    s->path);
    }
    HP_TRY(status);
    HP_TRY(write_table(f->arena, s, c, &t, err));
    return print(f, s, t, &outcome, hp_now_s() - start_s, err);
}

int cmd_calibrate(int argc, char **argv) {
    static const frame_command command = {
        .option = OPTIONS,
        .usage = "\n--import FILE...",
        .doc = "Measures compute tasks, messages and collectives on this machine and writes a cost table.",
        .max_word = 17,
        .too_many = "at most 17 files; '%s' is one too many",
        .run = calibrate};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
