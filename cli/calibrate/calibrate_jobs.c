/* calibrate_jobs.c - the list of training and message runs, and the plans of all. */
#include "cli/calibrate/calibrate_jobs.h"
#include "plan/program/lanes.h"

#include <stdarg.h>
#include <string.h>

/* Each task's time is a line over its size, so a few sizes per shape suffice: small and large images, one to
 * eight of them. Small batches of the small nets stand for micro-batches, large ones for whole batches. */
typedef struct series {
    const char *net;
    int32_t image;
    int32_t micro_batch[6]; /* 0 ends the list */
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
static const series ON_GPUS[] = {{"cnn", 28, {64}},          {"resnet50", 224, {8, 64}},
                                 {"resnet50", 512, {4}},     {"resnet101", 256, {32}},
                                 {"mobilenetv2", 224, {32}}, {"unet:16", 256, {4}},
                                 {"amoebanetd", 224, {16}},  {NULL, 0, {0}}};
static const int32_t ONE_NET[] = {1, 4, 16, 64, 0};

double calibrate_step_s(const calibrate_jobs *jobs, const hp_graph *g, int64_t samples, double per_mac) {
    const double flops_per_s =
        hp_device_on_gpu(jobs->device) ? 10e12 : 60e9; /* guesses, of a core and of a GPU */
    double macs = 0;
    for (int l = 0; l < g->n_layer; l++) macs += (double)hp_layer_macs(g, l);
    return per_mac * macs * (double)samples / flops_per_s;
}

/* Forward, and twice that backward. */
static double guessed_step_s(const calibrate_jobs *jobs, const hp_graph *g, int64_t samples) {
    return calibrate_step_s(jobs, g, samples, 6);
}

int64_t calibrate_steps(double step_s) {
    static const double JOB_S = 1.2;
    const double n = JOB_S / step_s;
    return n < 4 ? 4 : n > 20 ? 20 : (int64_t)n;
}

int32_t calibrate_ranks(const hp_machine *m) {
    static const int32_t MOST_RANKS = 8; /* more ranks only repeat what these say about sharing */
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

/* How it runs beside others. */
__attribute__((format(printf, 2, 3))) static void say(calibrate_job *j, const char *format, ...) {
    const size_t used = strlen(j->text);
    va_list a;
    va_start(a, format);
    vsnprintf(j->text + used, sizeof j->text - used, format, a);
    va_end(a);
}

/* On all cores; on one GPU. */
static void add_beside(const hp_machine *m, calibrate_jobs *jobs, const hp_graph *g, int32_t batch,
                       int32_t prec) {
    const int32_t ranks = hp_device_on_gpu(jobs->device) ? 2 : calibrate_ranks(m);
    if (ranks < 2) return;
    calibrate_job *j = add_net(jobs, g, batch, prec);
    *(hp_device_on_gpu(jobs->device) ? &j->clients : &j->dp) = ranks;
    say(j, " on each of %d ranks%s", ranks, hp_device_on_gpu(jobs->device) ? " of a GPU" : "");
}

/* Strips of rows and of columns: their copies have long and short rows. */
static void add_tiles(calibrate_jobs *jobs, const hp_graph *g, int32_t batch, int32_t prec) {
    for (int32_t rows = 1; rows <= 2; rows++) {
        calibrate_job *j = add_net(jobs, g, batch, prec);
        j->rows = rows;
        j->cols = 3 - rows;
        say(j, " on %dx%d tiles", j->rows, j->cols);
    }
}

enum { JOBS_OF_A_BATCH = 4 };

static void add_batches(const hp_machine *m, calibrate_jobs *jobs, const hp_graph *g, const int32_t *batch,
                        int32_t prec) {
    static const double MOST_S = 2.5; /* of a step: more images only repeat what fewer say */
    const bool first_prec = prec == HP_PREC_FP32;
    for (int i = 0; batch[i] && jobs->n + JOBS_OF_A_BATCH <= CALIBRATE_JOBS; i++) {
        if (batch[i] > jobs->most_images) break;
        if (batch[i] > 4 && guessed_step_s(jobs, g, batch[i]) > MOST_S) break;
        add_net(jobs, g, batch[i], prec);
        if (first_prec || i == 0) add_beside(m, jobs, g, batch[i], prec);
        const bool room = m->devices_per_node > 1 || !m->device.is_cpu; /* GPUs hold several ranks */
        if (first_prec && i < 2 && room) add_tiles(jobs, g, batch[i], prec);
    }
}

static hp_status add_series(hp_arena *arena, const hp_machine *m, const char *net, int h, int w,
                            const int32_t *batch, calibrate_jobs *jobs, hp_error *err) {
    static const char *const precisions[] = {"fp32", "tf32", "bf16", "fp16"}; /* those a device trains in */
    hp_graph *g = NULL;
    HP_TRY(hp_net_build(arena, net, h, w, hp_net_default_classes(net), &g, err));
    if (!hp_graph_trains(g, NULL)) return HP_OK;
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++) {
        int32_t prec;
        if (calibrate_has_prec(jobs->device, HP_MODE_TRAIN, precisions[p], &prec))
            add_batches(m, jobs, g, batch, prec);
    }
    return HP_OK;
}

hp_status calibrate_add_nets(hp_arena *arena, const hp_machine *m, const char *net, int h, int w,
                             calibrate_jobs *jobs, hp_error *err) {
    if (net) return add_series(arena, m, net, h, w, ONE_NET, jobs, err);
    for (const series *s = hp_device_on_gpu(jobs->device) ? ON_GPUS : ON_CORES; s->net; s++)
        HP_TRY(add_series(arena, m, s->net, s->image, s->image, s->micro_batch, jobs, err));
    return HP_OK;
}

/* --- messages --- */

static calibrate_job *add_job(calibrate_jobs *jobs, calibrate_kind kind, int32_t ranks, hp_backend backend,
                              int64_t steps) {
    calibrate_job *j = &jobs->job[jobs->n++];
    *j = (calibrate_job){.kind = kind,
                         .dp = kind == CALIBRATE_COLLECTIVE ? ranks : 1,
                         .backend = backend,
                         .micro_batch = 1,
                         .steps = steps};
    return j;
}

static void add_messages(calibrate_jobs *jobs, hp_backend backend, int64_t steps) {
    calibrate_job *j = add_job(jobs, CALIBRATE_PING_PONG, 2, backend, steps);
    snprintf(j->text, sizeof j->text, "messages between 2 ranks by %s", hp_backend_names[backend]);
}

static void add_collective(calibrate_jobs *jobs, int32_t ranks, hp_backend backend, hp_collective what,
                           hp_algorithm algorithm, int64_t steps) {
    if (jobs->n == CALIBRATE_JOBS || hp_backend_lacks((int32_t)backend, what, HP_REDUCE_SUM, HP_F32, true))
        return;
    calibrate_job *j = add_job(jobs, CALIBRATE_COLLECTIVE, ranks, backend, steps);
    j->what = what;
    j->algorithm = algorithm;
    snprintf(j->text, sizeof j->text, "%s over %d ranks by %s%s%s", hp_collective_infos[what].name, ranks,
             hp_backend_names[backend], algorithm ? "." : "",
             algorithm ? hp_algorithms[algorithm]->name : "");
}

/* Of processors, each algorithm; of GPUs what the rule says, as nothing else is chosen there. */
static void add_collectives(calibrate_jobs *jobs, int32_t ranks, hp_backend backend, hp_collective what,
                            bool all, int64_t steps) {
    const hp_collective_case c = {.what = what, .size = ranks, .per_node = ranks};
    if (!all || !hp_backend_steps((int32_t)backend) || hp_device_on_gpu(jobs->device)) {
        add_collective(jobs, ranks, backend, what, HP_ALGORITHM_LIBRARY, steps);
        return;
    }
    for (int a = HP_ALGORITHM_LIBRARY + 1; a < HP_ALGORITHMS; a++)
        if (hp_algorithm_does((hp_algorithm)a, &c, true))
            add_collective(jobs, ranks, backend, what, (hp_algorithm)a, steps);
}

/* Two ranks of one GPU exchange messages too (AccDP), but not by NCCL. */
void calibrate_add_comm(const hp_machine *m, int64_t steps, bool all, calibrate_jobs *jobs) {
    const int32_t most = hp_device_on_gpu(jobs->device) && m->devices_per_node < 2 ? 2 : m->devices_per_node;
    if (most < 2) return;
    for (int b = 0; b < (int)HP_BACKENDS; b++) {
        const bool alone = b == (int)HP_BACKEND_NCCL && m->devices_per_node < 2;
        if (!hp_device_has_backend(jobs->device, (hp_backend)b) || alone) continue;
        if (b != (int)HP_BACKEND_OWN) add_messages(jobs, (hp_backend)b, steps);
        for (int32_t ranks = 2; ranks <= most && ranks <= 16; ranks *= 2)
            for (int c = 0; c < (all ? (int)HP_COLLECTIVE_BARRIER : 1); c++)
                add_collectives(jobs, ranks, (hp_backend)b, (hp_collective)c, all, steps);
    }
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
    s.strips = job->strips;
    if (job->rows * job->cols == 1) return s;
    for (int t = 0; t < HP_TRAFFICS; t++)
        s.comm[t] = hp_comm_choice(HP_BACKEND_OWN, HP_ALGORITHM_LIBRARY); /* tiles may share a GPU */
    s.n_sp = 1;
    s.sp_rows[0] = job->rows;
    s.sp_cols[0] = job->cols;
    return s;
}

static hp_status use_messages(hp_arena *arena, const calibrate_job *job, const bench_sizes *sizes,
                              hp_plan *plan, hp_error *err) {
    const bench_way way = {plan->device->kind, job->backend, job->what, job->algorithm};
    hp_program *p = job->kind == CALIBRATE_COLLECTIVE
                        ? bench_collectives(arena, plan->graph, job->dp, sizes, &way)
                        : bench_ping_pong(arena, plan->graph, sizes, &way);
    HP_TRY(hp_lanes(arena, p, plan->graph, err));
    hp_plan_use(plan, p);
    return HP_OK;
}

hp_status calibrate_plan(hp_arena *arena, const hp_machine *m, const hp_device_info *device,
                         const calibrate_job *job, const bench_sizes *sizes, hp_plan *plan, hp_error *err) {
    const bool net = job->kind == CALIBRATE_NET;
    *plan = (hp_plan){.image_h = net ? job->image_h : 28,
                      .image_w = net ? job->image_w : 28,
                      .mode = net ? (int32_t)job->mode : HP_MODE_INFER,
                      .dtype = device->dtype,
                      .seed = 1,
                      .device = device,
                      .strategy = strategy_of(job),
                      .machine = *m};
    plan->batch =
        job->strategy ? job->batch : (int64_t)hp_strategy_replicas(&plan->strategy) * job->micro_batch;
    snprintf(plan->net, sizeof plan->net, "%s",
             net ? job->net : "cnn"); /* messages need some graph to go with */
    plan->classes = hp_net_default_classes(plan->net);
    HP_TRY(hp_plan_build(arena, plan, NULL, err));
    return net ? HP_OK : use_messages(arena, job, sizes, plan, err);
}
