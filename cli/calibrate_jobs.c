/* calibrate_jobs.c - the list of runs and their plans. */
#include "cli/calibrate_jobs.h"

#include <string.h>

/* Each task's time is a line over its size, so a few sizes per shape suffice: small and large images, one to
 * eight of them. Small batches of the small nets stand for micro-batches, large ones for whole batches. */
typedef struct series {
    const char *net;
    int32_t image;
    int32_t micro_batch[6]; /* 0 ends the list */
} series;

static const series DEFAULT[] = {
    {"cnn", 28, {1, 8, 32, 64}},     {"cnn", 64, {1, 8, 32}},         {"cnn", 128, {1, 8}},
    {"cnn", 224, {1, 4, 8}},         {"resnet18", 64, {1, 4, 16}},    {"resnet18", 128, {1, 4, 8}},
    {"resnet18", 224, {1, 4, 8}},    {"resnet50", 64, {1, 4, 16}},    {"resnet50", 128, {1, 4, 8}},
    {"resnet50", 224, {1, 2, 8}},    {"mobilenetv2", 64, {1, 4, 16}}, {"mobilenetv2", 128, {1, 4, 8}},
    {"mobilenetv2", 224, {1, 2, 8}},
};
static const int32_t ONE_NET[] = {1, 4, 16, 64, 0};

/* Forward, and twice that backward, at a guessed rate. */
static double guessed_step_s(const hp_graph *g, int64_t samples) {
    static const double GUESSED_FLOPS_PER_S = 60e9;
    double macs = 0;
    for (int l = 0; l < g->n_layer; l++) macs += (double)hp_layer_macs(g, l);
    return 6 * macs * (double)samples / GUESSED_FLOPS_PER_S;
}

int64_t calibrate_steps(double step_s) {
    static const double JOB_S = 1.2;
    const double n = JOB_S / step_s;
    return n < 4 ? 4 : n > 20 ? 20 : (int64_t)n;
}

int32_t calibrate_ranks(const hp_machine *m) {
    static const int32_t MOST_RANKS = 8; /* more ranks only repeat what these say about sharing */
    return m->cores_per_node < MOST_RANKS ? m->cores_per_node : MOST_RANKS;
}

static calibrate_job *add_net(calibrate_jobs *jobs, const hp_graph *g, int32_t batch) {
    calibrate_job *j = &jobs->job[jobs->n++];
    *j = (calibrate_job){.kind = CALIBRATE_NET,
                         .image_h = g->image_h,
                         .image_w = g->image_w,
                         .mode = HP_MODE_TRAIN,
                         .strips = 1,
                         .dp = 1,
                         .rows = 1,
                         .cols = 1,
                         .micro_batch = batch,
                         .steps = calibrate_steps(guessed_step_s(g, batch))};
    snprintf(j->net, sizeof j->net, "%s", g->net);
    return j;
}

/* Alone, then on all cores. */
static void add_replicas(calibrate_jobs *jobs, const hp_graph *g, int32_t batch, int32_t ranks) {
    for (int32_t dp = 1; dp <= ranks; dp = dp == ranks ? ranks + 1 : ranks) {
        calibrate_job *j = add_net(jobs, g, batch);
        j->dp = dp;
        snprintf(j->text, sizeof j->text, "%.40s %dx%d, %d images on %s%d rank%s", g->net, g->image_h,
                 g->image_w, batch, dp > 1 ? "each of " : "", dp, dp > 1 ? "s" : "");
    }
}

/* Strips of rows and of columns: their copies have long and short rows. */
static void add_tiles(calibrate_jobs *jobs, const hp_graph *g, int32_t batch) {
    for (int32_t rows = 1; rows <= 2; rows++) {
        calibrate_job *j = add_net(jobs, g, batch);
        j->rows = rows;
        j->cols = 3 - rows;
        snprintf(j->text, sizeof j->text, "%.40s %dx%d, %d images on %dx%d tiles", g->net, g->image_h,
                 g->image_w, batch, j->rows, j->cols);
    }
}

static hp_status add_series(hp_arena *arena, const hp_machine *m, const char *net, int h, int w,
                            const int32_t *batch, calibrate_jobs *jobs, hp_error *err) {
    hp_graph *g = NULL;
    HP_TRY(hp_net_build(arena, net, h, w, hp_net_default_classes(net), &g, err));
    if (!hp_graph_trains(g, NULL)) return HP_OK;
    static const double MOST_S = 2.5; /* of a step: more images only repeat what fewer say */
    for (int i = 0; batch[i] && jobs->n + 4 <= CALIBRATE_JOBS; i++) {
        if (batch[i] > 4 && guessed_step_s(g, batch[i]) > MOST_S) break;
        add_replicas(jobs, g, batch[i], calibrate_ranks(m));
        if (i < 2 && m->devices_per_node > 1) add_tiles(jobs, g, batch[i]);
    }
    return HP_OK;
}

hp_status calibrate_add_nets(hp_arena *arena, const hp_machine *m, const char *net, int h, int w,
                             calibrate_jobs *jobs, hp_error *err) {
    if (net) return add_series(arena, m, net, h, w, ONE_NET, jobs, err);
    for (size_t i = 0; i < sizeof DEFAULT / sizeof *DEFAULT; i++)
        HP_TRY(add_series(arena, m, DEFAULT[i].net, DEFAULT[i].image, DEFAULT[i].image,
                          DEFAULT[i].micro_batch, jobs, err));
    return HP_OK;
}

void calibrate_add_comm(const hp_machine *m, int64_t steps, calibrate_jobs *jobs) {
    if (m->devices_per_node < 2) return;
    jobs->job[jobs->n++] = (calibrate_job){.kind = CALIBRATE_PING_PONG,
                                           .dp = 1,
                                           .micro_batch = 1,
                                           .steps = steps,
                                           .text = "messages between 2 ranks"};
    for (int32_t ranks = 2; ranks <= m->devices_per_node && ranks <= 16; ranks *= 2) {
        calibrate_job *j = &jobs->job[jobs->n++];
        *j = (calibrate_job){.kind = CALIBRATE_ALLREDUCE, .dp = ranks, .micro_batch = 1, .steps = steps};
        snprintf(j->text, sizeof j->text, "all-reduce over %d ranks", ranks);
    }
}

hp_status calibrate_plan(hp_arena *arena, const hp_machine *m, const calibrate_job *job,
                         const bench_sizes *sizes, hp_plan *plan, hp_error *err) {
    const bool net = job->kind == CALIBRATE_NET;
    *plan = (hp_plan){.image_h = net ? job->image_h : 28,
                      .image_w = net ? job->image_w : 28,
                      .mode = net ? (int32_t)job->mode : HP_MODE_INFER,
                      .dtype = HP_F32,
                      .batch = job->dp * job->micro_batch,
                      .seed = 1,
                      .device = "cpu",
                      .strategy = hp_strategy_default(),
                      .machine = *m};
    snprintf(plan->net, sizeof plan->net, "%s",
             net ? job->net : "cnn"); /* messages need some graph to go with */
    plan->classes = hp_net_default_classes(plan->net);
    plan->strategy.dp = job->dp;
    if (net) plan->strategy.prec = job->prec;
    if (net) plan->strategy.strips = job->strips;
    if (net && job->rows * job->cols > 1) {
        plan->strategy.n_sp = 1;
        plan->strategy.sp_rows[0] = job->rows;
        plan->strategy.sp_cols[0] = job->cols;
    }
    if (job->kind == CALIBRATE_PING_PONG) plan->strategy.stages = 2;
    HP_TRY(hp_plan_build(arena, plan, NULL, err));
    if (job->kind == CALIBRATE_ALLREDUCE)
        hp_plan_use(plan, bench_allreduce(arena, plan->graph, job->dp, sizes));
    if (job->kind == CALIBRATE_PING_PONG) hp_plan_use(plan, bench_ping_pong(arena, plan->graph, sizes));
    return HP_OK;
}
