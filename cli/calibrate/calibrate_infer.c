/* calibrate_infer.c - inference programs to measure: kernels that differ from training's, in each precision;
 * strips for maps with few rows and the copies between them; large images for long rows. */
#include "cli/calibrate/calibrate_jobs.h"
#include "networks/deploy/deploy.h"

#include <string.h>

typedef struct series {
    const char *net;
    int32_t image_h, image_w;
    int32_t batch[4]; /* 0 ends the list */
    bool beside;      /* also on all cores */
    bool strips;      /* also in strips */
    bool stored;      /* also in precisions that store another type than they compute */
} series;

/* The last ones have the row lengths of very large images, but few rows. */
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
/* GPUs: runs take longer to start than to measure. */
static const series ON_GPUS[] = {
    {"resnet101", 256, 256, {1, 64}, false, false, true},
    {"resnet50", 224, 224, {1}, true, false, true},
    {"resnet50", 1024, 1024, {1}, false, true, true},
    {"mobilenetv2", 224, 224, {4}, false, false, true},
    {"unet:16", 256, 256, {4}, false, false, true},
    {"amoebanetd:3,32", 224, 224, {1}, false, false, true},
    {"densenet121", 224, 224, {1}, false, false, false},
    {"resnet50", 64, 8192, {1}, false, false, true},
};
enum { STRIPS = 8 };
/* Precisions to calibrate, by name; those that a device lacks are skipped. */
static const char *const precisions[] = {"fp32", "int8"}, *const stored[] = {"tf32", "bf16", "fp16",
                                                                             "int8-dynamic"};

/* Without the backward pass, the rate is higher; 8 bits take a quarter of the time. */
static double guessed_step_s(const calibrate_jobs *jobs, const hp_graph *g, int64_t samples, int32_t prec) {
    static const double FASTER = 1.7, INT8_FASTER = 3.5;
    return calibrate_step_s(jobs, g, samples, 2 / FASTER) / (prec == HP_PREC_INT8 ? INT8_FASTER : 1);
}

static void add_job(calibrate_jobs *jobs, const hp_graph *g, int32_t batch, int32_t prec, int32_t ranks,
                    int32_t strips) {
    const bool gpus = hp_device_on_gpu(jobs->device); /* concurrent ranks share one GPU */
    const double step_s = guessed_step_s(jobs, g, batch, prec);
    if (jobs->n == CALIBRATE_JOBS || batch > jobs->most_images || calibrate_is_too_long(step_s, batch))
        return;
    calibrate_job *j = &jobs->job[jobs->n++];
    *j = (calibrate_job){.kind = CALIBRATE_NET,
                         .image_h = g->image_h,
                         .image_w = g->image_w,
                         .mode = HP_MODE_INFER,
                         .prec = prec,
                         .strips = strips,
                         .dp = gpus ? 1 : ranks,
                         .clients = gpus ? ranks : 1,
                         .rows = 1,
                         .cols = 1,
                         .micro_batch = batch,
                         .steps = calibrate_steps(step_s)};
    snprintf(j->net, sizeof j->net, "%s", g->net);
    snprintf(j->text, sizeof j->text, "%.30s %dx%d in %s, %d images on %d rank%s%s", g->net, g->image_h,
             g->image_w, hp_prec_names[prec], batch, ranks, ranks > 1 ? "s each" : "",
             strips > 1 ? ", in strips" : "");
}

static void add_in(calibrate_jobs *jobs, const hp_machine *m, const hp_graph *g, const series *s,
                   int32_t prec) {
    const int32_t ranks = m->device.is_cpu ? calibrate_ranks(m) : 2;
    for (int i = 0; s->batch[i]; i++) add_job(jobs, g, s->batch[i], prec, 1, 1);
    const bool strips = s->strips && g->image_h >= STRIPS, beside = s->beside && ranks > 1;
    if (beside) add_job(jobs, g, 1, prec, ranks, 1);
    if (strips) add_job(jobs, g, 1, prec, 1, STRIPS);
    if (strips && beside) add_job(jobs, g, 1, prec, ranks, STRIPS);
}

static void add_series(calibrate_jobs *jobs, const hp_machine *m, const hp_graph *g, const series *s) {
    int32_t prec;
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++)
        if (calibrate_has_prec(jobs->device, HP_MODE_INFER, precisions[p], &prec))
            add_in(jobs, m, g, s, prec);
    for (size_t p = 0; s->stored && p < sizeof stored / sizeof *stored; p++)
        if (calibrate_has_prec(jobs->device, HP_MODE_INFER, stored[p], &prec)) {
            for (int i = 0; s->batch[i] && (i == 0 || !m->device.is_cpu); i++)
                add_job(jobs, g, m->device.is_cpu ? 1 : s->batch[i], prec, 1, 1);
        }
}

hp_status calibrate_add_inference(hp_arena *arena, const hp_machine *m, const char *net, int h, int w,
                                  calibrate_jobs *jobs, hp_error *err) {
    series one = {net, h, w, {1, 4}, true, true, true};
    /* the time limit may end the list, so requested jobs come first */
    if (!m->device.is_cpu && jobs->most_images > 4) {
        const int32_t most = (int32_t)jobs->most_images, batch[] = {most, 4, 1, 0};
        memcpy(one.batch, batch, sizeof batch);
    }
    const series *list = net ? &one : m->device.is_cpu ? DEFAULT : ON_GPUS;
    const size_t n = net                ? 1
                     : m->device.is_cpu ? sizeof DEFAULT / sizeof *DEFAULT
                                        : sizeof ON_GPUS / sizeof *ON_GPUS;
    for (const series *s = list; s < list + n; s++) {
        hp_graph *g = NULL;
        HP_TRY(hp_net_build(arena, s->net, s->image_h, s->image_w, hp_net_default_classes(s->net), &g, err));
        add_series(jobs, m, g, s);
    }
    return HP_OK;
}
