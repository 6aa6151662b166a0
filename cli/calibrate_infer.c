/* calibrate_infer.c - inference programs to measure: other kernels than training's, in each precision; strips
 * for maps of few rows and the copies between them; large images for long rows. */
#include "cli/calibrate_jobs.h"
#include "plan/deploy.h"

typedef struct series {
    const char *net;
    int32_t image_h, image_w;
    int32_t batch[3]; /* 0 ends the list */
    bool beside;      /* also on all cores */
    bool strips;      /* also in strips */
    bool stored;      /* also in the precisions that store otherwise than they compute */
} series;

/* The last ones have the rows of very large images, and few of them. */
static const series DEFAULT[] = {
    {"resnet18", 224, 224, {1}, false, false, false},
    {"resnet50", 224, 224, {1, 4}, true, false, true},
    {"resnet50", 512, 512, {1}, true, true, false},
    {"resnet50", 1024, 1024, {1}, false, true, false},
    {"mobilenetv2", 224, 224, {1, 4}, true, false, true},
    {"mobilenetv2", 1024, 1024, {1}, false, true, false},
    {"unet:16", 256, 256, {1, 4}, true, true, true},
    {"unet:16", 1024, 1024, {1}, false, true, false},
    {"densenet121", 224, 224, {1}, false, false, false},
    {"amoebanetd:3,32", 224, 224, {1}, false, false, false},
    {"resnet50", 64, 8192, {1}, false, false, false},
    {"mobilenetv2", 64, 8192, {1}, false, false, false},
    {"unet:16", 64, 4096, {1}, false, false, false},
};
enum { STRIPS = 8 };
static const int32_t precisions[] = {HP_PREC_FP32, HP_PREC_INT8},
                     stored[] = {HP_PREC_BF16, HP_PREC_FP16, HP_PREC_INT8_DYNAMIC};

/* One core's multiply-adds at a guessed rate; 8 bits take a quarter. */
static double guessed_step_s(const hp_graph *g, int64_t samples, int32_t prec) {
    static const double GUESSED_FLOPS_PER_S = 100e9, INT8_FASTER = 3.5;
    double macs = 0;
    for (int l = 0; l < g->n_layer; l++) macs += (double)hp_layer_macs(g, l);
    return 2 * macs * (double)samples / GUESSED_FLOPS_PER_S / (prec >= HP_PREC_INT8 ? INT8_FASTER : 1);
}

static void add_job(calibrate_jobs *jobs, const hp_graph *g, int32_t batch, int32_t prec, int32_t dp,
                    int32_t strips) {
    if (jobs->n == CALIBRATE_JOBS) return;
    calibrate_job *j = &jobs->job[jobs->n++];
    *j = (calibrate_job){.kind = CALIBRATE_NET,
                         .image_h = g->image_h,
                         .image_w = g->image_w,
                         .mode = HP_MODE_INFER,
                         .prec = prec,
                         .strips = strips,
                         .dp = dp,
                         .rows = 1,
                         .cols = 1,
                         .micro_batch = batch,
                         .steps = calibrate_steps(guessed_step_s(g, batch, prec))};
    snprintf(j->net, sizeof j->net, "%s", g->net);
    snprintf(j->text, sizeof j->text, "%.30s %dx%d in %s, %d images on %d rank%s%s", g->net, g->image_h,
             g->image_w, hp_prec_names[prec], batch, dp, dp > 1 ? "s each" : "",
             strips > 1 ? ", in strips" : "");
}

static void add_series(calibrate_jobs *jobs, const hp_machine *m, const hp_graph *g, const series *s) {
    const int32_t ranks = calibrate_ranks(m);
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++) {
        for (int i = 0; s->batch[i]; i++) add_job(jobs, g, s->batch[i], precisions[p], 1, 1);
        const bool strips = s->strips && g->image_h >= STRIPS, beside = s->beside && ranks > 1;
        if (beside) add_job(jobs, g, 1, precisions[p], ranks, 1);
        if (strips) add_job(jobs, g, 1, precisions[p], 1, STRIPS);
        if (strips && beside) add_job(jobs, g, 1, precisions[p], ranks, STRIPS);
    }
    for (size_t p = 0; s->stored && p < sizeof stored / sizeof *stored; p++)
        add_job(jobs, g, 1, stored[p], 1, 1);
}

hp_status calibrate_add_inference(hp_arena *arena, const hp_machine *m, const char *net, int h, int w,
                                  calibrate_jobs *jobs, hp_error *err) {
    const series one = {net, h, w, {1, 4}, true, true, true};
    for (size_t i = 0; i < (net ? 1 : sizeof DEFAULT / sizeof *DEFAULT); i++) {
        const series *s = net ? &one : &DEFAULT[i];
        hp_graph *g = NULL;
        HP_TRY(hp_net_build(arena, s->net, s->image_h, s->image_w, hp_net_default_classes(s->net), &g, err));
        add_series(jobs, m, g, s);
    }
    return HP_OK;
}
