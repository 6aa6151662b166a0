/* calibrate_jobs.c - the list of training and message runs, and the plans of all runs. */
#include "cli/calibrate/calibrate_jobs.h"
#include "networks/graph/optimizer.h"
#include "plan/program/lanes.h"

#include <stdarg.h>
#include <string.h>

/* Each task's time is a line over its size, so a few sizes per shape suffice: small and large images, one to
 * eight of them. Small batches of small nets stand for micro-batches, large ones for whole batches. */
enum { BATCHES = 6 };
typedef struct series {
    const char *net;
    int32_t image;
    int32_t micro_batch[BATCHES]; /* 0 ends the list */
} series;

static const series ON_CORES[] = {{"cnn", 28, {1, 8, 32, 64}},
                                  {"cnn", 64, {1, 8, 32}},
                                  {"cnn", 128, {1, 8}},
                                  {"cnn", 224, {1, 4, 8}},
                                  {"resnet18", 64, {1, 4, 16}},
                                  {"resnet18", 128, {1, 4, 8}},
                                  {"resnet18", 224, {1, 4, 8}},
                                  {"resnet50", 64, {1, 4, 16}},
                                  {"resnet50", 128, {1, 4, 8}},
                                  {"resnet50", 224, {1, 2, 8}},
                                  {"mobilenetv2", 64, {1, 4, 16}},
                                  {"mobilenetv2", 128, {1, 4, 8}},
                                  {"mobilenetv2", 224, {1, 2, 8}},
                                  {NULL, 0, {0}}};
/* A run takes longer to start than to measure, and there are more precisions. */
static const series ON_GPUS[] = {{"cnn", 28, {64}},
                                 {"resnet50", 224, {8, 64}},
                                 {"resnet50", 512, {4}},
                                 {"resnet101", 256, {32}},
                                 {"mobilenetv2", 224, {32}},
                                 {"unet:16", 256, {4}},
                                 {"amoebanetd:18,208", 224, {16}},
                                 {NULL, 0, {0}}};
static const int32_t ONE_NET[BATCHES] = {1, 4, 16, 64};

double calibrate_step_s(const calibrate_jobs *jobs, const hp_graph *g, int64_t samples, double per_mac) {
    const double flops_per_s =
        hp_device_on_gpu(jobs->device) ? 10e12 : 60e9; /* guesses for a core and for a GPU */
    double macs = 0;
    for (int l = 0; l < g->n_layer; l++) macs += (double)hp_layer_macs(g, l);
    return per_mac * macs * (double)samples / flops_per_s;
}

/* One forward pass, and a backward pass that takes twice as long. */
static double guessed_step_s(const calibrate_jobs *jobs, const hp_graph *g, int64_t samples) {
    return calibrate_step_s(jobs, g, samples, 6);
}

int64_t calibrate_steps(double step_s) {
    static const double JOB_S = 1.2;
    const double n = JOB_S / step_s;
    return n < 4 ? 4 : n > 20 ? 20 : (int64_t)n;
}

bool calibrate_is_too_long(double step_s, int32_t batch) {
    static const double MOST_S = 2.5;
    return batch > 4 && step_s > MOST_S;
}

int32_t calibrate_ranks(const hp_machine *m) {
    static const int32_t MOST_RANKS = 8; /* more ranks would add nothing about sharing */
    const int32_t here = m->device.is_cpu ? m->cores_per_node : m->devices_per_node;
    return here < MOST_RANKS ? here : MOST_RANKS;
}

/* --- precisions --- */

bool calibrate_has_prec(const hp_device_info *device, hp_mode mode, const char *name, int32_t *prec) {
    for (*prec = 0; hp_prec_names[*prec]; ++*prec)
        if (strcmp(hp_prec_names[*prec], name) == 0)
            return hp_prec_allowed(*prec, mode == HP_MODE_INFER, device, NULL);
    return false;
}

/* --- networks --- */

static calibrate_job *add_net(calibrate_jobs *jobs, const hp_graph *g, int32_t batch, int32_t prec) {
    calibrate_job *j = &jobs->job[jobs->n++];
    *j = (calibrate_job){.kind = CALIBRATE_NET,
                         .image_h = g->image_h,
                         .image_w = g->image_w,
                         .mode = HP_MODE_TRAIN,
                         .prec = prec,
                         .strips = 1,
                         .dp = 1,
                         .rows = 1,
                         .cols = 1,
                         .micro_batch = batch,
                         .steps = calibrate_steps(guessed_step_s(jobs, g, batch))};
    snprintf(j->net, sizeof j->net, "%s", g->net);
    snprintf(j->text, sizeof j->text, "%.40s %dx%d in %s, %d images", g->net, g->image_h, g->image_w,
             hp_prec_names[prec], batch);
    return j;
}

/* Describes how it runs beside others. */
__attribute__((format(printf, 2, 3))) static void say(calibrate_job *j, const char *format, ...) {
    const size_t used = strlen(j->text);
    va_list a;
    va_start(a, format);
    vsnprintf(j->text + used, sizeof j->text - used, format, a);
    va_end(a);
}

/* Adds a run on all cores; for GPUs, on one GPU. */
static void add_beside(const hp_machine *m, calibrate_jobs *jobs, const hp_graph *g, int32_t batch,
                       int32_t prec) {
    const int32_t ranks = hp_device_on_gpu(jobs->device) ? 2 : calibrate_ranks(m);
    if (ranks < 2) return;
    calibrate_job *j = add_net(jobs, g, batch, prec);
    *(hp_device_on_gpu(jobs->device) ? &j->clients : &j->dp) = ranks;
    say(j, " on each of %d ranks%s", ranks, hp_device_on_gpu(jobs->device) ? " of a GPU" : "");
}

/* Adds strips of rows and of columns: their copies have long and short rows. */
static void add_tiles(calibrate_jobs *jobs, const hp_graph *g, int32_t batch, int32_t prec) {
    for (int32_t rows = 1; rows <= 2; rows++) {
        calibrate_job *j = add_net(jobs, g, batch, prec);
        j->rows = rows;
        j->cols = 3 - rows;
        say(j, " on %dx%d tiles", j->rows, j->cols);
    }
}

enum { JOBS_OF_A_BATCH = 4 };

static bool is_wanted(const calibrate_jobs *jobs, const hp_graph *g, int32_t batch) {
    return batch > 0 && batch <= jobs->most_images &&
           !calibrate_is_too_long(guessed_step_s(jobs, g, batch), batch) &&
           jobs->n + JOBS_OF_A_BATCH <= CALIBRATE_JOBS;
}

static void add_company(const hp_machine *m, calibrate_jobs *jobs, const hp_graph *g, const int32_t *batch,
                        int32_t prec) {
    const bool first_prec = prec == HP_PREC_FP32;
    for (int i = 0; i < BATCHES && is_wanted(jobs, g, batch[i]); i++) {
        if (first_prec || i == 0) add_beside(m, jobs, g, batch[i], prec);
        const bool room = m->devices_per_node > 1 || !m->device.is_cpu; /* GPUs hold several ranks */
        if (first_prec && i < 2 && room) add_tiles(jobs, g, batch[i], prec);
    }
}

/* A single rank with the largest batch determines most of a step. It comes first, in every precision, because
 * the time limit may end the list anywhere. */
static hp_status add_series(hp_arena *arena, const hp_machine *m, const char *net, int h, int w,
                            const int32_t *batch, calibrate_jobs *jobs, hp_error *err) {
    static const char *const precisions[] = {"fp32", "tf32", "bf16", "fp16"}; /* those in which a device
                                                                               * trains */
    int32_t prec[sizeof precisions / sizeof *precisions], n = 0;
    hp_graph *g = NULL;
    HP_TRY(hp_net_build(arena, net, h, w, hp_net_default_classes(net), &g, err));
    if (!hp_graph_trains(g, NULL)) return HP_OK;
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++)
        n += calibrate_has_prec(jobs->device, HP_MODE_TRAIN, precisions[p], &prec[n]);
    for (int i = BATCHES - 1; i >= 0; i--)
        for (int p = 0; p < n && is_wanted(jobs, g, batch[i]); p++) add_net(jobs, g, batch[i], prec[p]);
    for (int p = 0; p < n; p++) add_company(m, jobs, g, batch, prec[p]);
    return HP_OK;
}

/* Batches of a network given by name; the largest is the requested one. */
static void set_batches(int32_t batch[BATCHES], int64_t most) {
    int n = 0;
    memset(batch, 0, sizeof *batch * BATCHES);
    for (int i = 0; ONE_NET[i] && ONE_NET[i] < most; i++) batch[n++] = ONE_NET[i];
    batch[n] = (int32_t)most;
}

/* Adds compressed gradients of two ranks and halos of two tiles, to measure encoding and decoding. */
static hp_status add_codecs(hp_arena *arena, const hp_machine *m, const char *net, int h, int w,
                            calibrate_jobs *jobs, hp_error *err) {
    static const char *const compressed[] = {
        "dp=2,compress=allreduce:bf16",       "dp=2,compress=allreduce:fp16", "dp=2,compress=allreduce:int8",
        "dp=2,compress=allreduce:powersgd:4", "sp=2x1,compress=halo:bf16",    "sp=2x1,compress=halo:zfp8"};
    hp_graph *g = NULL;
    HP_TRY(hp_net_build(arena, net, h, w, hp_net_default_classes(net), &g, err));
    for (size_t i = 0; i < sizeof compressed / sizeof *compressed && jobs->n < CALIBRATE_JOBS; i++) {
        hp_strategy *s = HP_NEW(arena, hp_strategy, 1);
        hp_reject why;
        HP_TRY(hp_strategy_parse(compressed[i], s, err));
        if (!hp_strategy_legal(s, g, 8, 0, &why) || !hp_device_allows(jobs->device, s, false, &why) ||
            hp_machine_devices(m) < 2)
            continue;
        calibrate_job *j = add_net(jobs, g, 4, HP_PREC_FP32);
        j->strategy = s;
        j->batch = 8;
        snprintf(j->text, sizeof j->text, "%s", compressed[i]);
    }
    return HP_OK;
}

/* Adds runs with the optimisers that other runs lack, with gradient clipping. */
static hp_status add_optimizers(hp_arena *arena, const char *net, int h, int w, calibrate_jobs *jobs,
                                hp_error *err) {
    hp_graph *g = NULL;
    HP_TRY(hp_net_build(arena, net, h, w, hp_net_default_classes(net), &g, err));
    if (!hp_graph_trains(g, NULL)) return HP_OK;
    for (int32_t i = 0; i < HP_OPTIMIZERS && jobs->n < CALIBRATE_JOBS; i++) {
        if (i == HP_SGD) continue;
        calibrate_job *j = add_net(jobs, g, 4, HP_PREC_FP32);
        j->optimizer = i;
        j->clips = true;
        say(j, ", by %s", hp_optimizer_infos[i].name);
    }
    return HP_OK;
}

hp_status calibrate_add_nets(hp_arena *arena, const hp_machine *m, const char *net, int h, int w,
                             calibrate_jobs *jobs, hp_error *err) {
    if (net) {
        int32_t batch[BATCHES];
        set_batches(batch, jobs->most_images);
        HP_TRY(add_series(arena, m, net, h, w, batch, jobs, err));
        HP_TRY(add_optimizers(arena, net, h, w, jobs, err));
        return add_codecs(arena, m, net, h, w, jobs, err);
    }
    HP_TRY(add_codecs(arena, m, "resnet18", 64, 64, jobs, err));
    HP_TRY(add_optimizers(arena, "resnet18", 64, 64, jobs, err));
    for (const series *s = hp_device_on_gpu(jobs->device) ? ON_GPUS : ON_CORES; s->net; s++)
        HP_TRY(add_series(arena, m, s->net, s->image, s->image, s->micro_batch, jobs, err));
    return HP_OK;
}

/* --- plans --- */

static hp_strategy strategy_of(const calibrate_job *job) {
    if (job->strategy) return *job->strategy;
    hp_strategy s = hp_strategy_default();
    s.dp = job->dp;
    if (job->kind == CALIBRATE_PING_PONG) s.stages = 2;
    for (int t = 0; job->kind != CALIBRATE_NET && t < HP_TRAFFICS; t++)
        s.comm[t] = hp_comm_choice(job->backend, HP_ALGORITHM_LIBRARY);
    if (job->kind != CALIBRATE_NET) return s;
    s.clients = job->clients > 1 ? job->clients : 1;
    s.prec = job->prec;
    s.strips.n = job->strips;
    if (job->rows * job->cols == 1) return s;
    for (int t = 0; t < HP_TRAFFICS; t++)
        s.comm[t] = hp_comm_choice(HP_BACKEND_OWN, HP_ALGORITHM_LIBRARY); /* tiles may share a GPU */
    s.sp.n = 1;
    s.sp.rows[0] = job->rows;
    s.sp.cols[0] = job->cols;
    return s;
}

static hp_status use_messages(hp_arena *arena, const calibrate_job *job, const bench_sizes *sizes,
                              hp_plan *plan, hp_error *err) {
    const bench_way way = {plan->device->kind, job->backend, job->what, job->algorithm,
                           plan->machine.nodes > 1 ? plan->machine.devices_per_node : 0};
    hp_program *p = job->kind == CALIBRATE_COLLECTIVE
                        ? bench_collectives(arena, plan->graph, job->dp, sizes, &way)
                        : bench_ping_pong(arena, plan->graph, sizes, &way);
    HP_TRY(hp_lanes(arena, p, plan->graph, err));
    hp_plan_use(plan, p);
    return HP_OK;
}

/* Reduces the machine to the number of nodes that the ranks need. */
static void place_ranks(const calibrate_job *job, hp_machine *m) {
    const int32_t ranks = job->kind == CALIBRATE_PING_PONG ? 2 : job->dp;
    if (job->kind == CALIBRATE_NET || m->nodes < 2) return;
    m->devices_per_node = job->per_node;
    m->nodes = ranks / job->per_node;
}

hp_status calibrate_plan(hp_arena *arena, const hp_machine *m, const hp_device_info *device,
                         const calibrate_job *job, const bench_sizes *sizes, hp_plan *plan, hp_error *err) {
    const bool net = job->kind == CALIBRATE_NET;
    *plan = (hp_plan){.image_h = net ? job->image_h : 28,
                      .image_w = net ? job->image_w : 28,
                      .mode = net ? (int32_t)job->mode : HP_MODE_INFER,
                      .dtype = device->dtype,
                      .seed = 1,
                      .optimizer = job->optimizer,
                      .clips = job->clips,
                      .device = device,
                      .strategy = strategy_of(job),
                      .machine = *m};
    place_ranks(job, &plan->machine);
    plan->batch =
        job->strategy ? job->batch : (int64_t)hp_strategy_replicas(&plan->strategy) * job->micro_batch;
    snprintf(plan->net, sizeof plan->net, "%s", net ? job->net : "cnn"); /* messages need some graph */
    plan->classes = hp_net_default_classes(plan->net);
    HP_TRY(hp_plan_build(arena, plan, NULL, err));
    return net ? HP_OK : use_messages(arena, job, sizes, plan, err);
}
