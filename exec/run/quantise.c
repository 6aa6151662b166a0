/* quantise.c - quantises from images: runs a float deployed program over calibration data, observes it on all
 * ranks, and writes the constants of the same network's int8 program. */
#include "exec/run/quantise.h"

#include "exec/data/weights/constants.h"
#include "exec/data/weights/quantised.h"
#include "exec/quant/equalise.h"
#include "exec/run/infer_job.h"
#include "exec/run/observe.h"
#include "exec/run/run_train.h"
#include "networks/deploy/deploy.h"

#include <string.h>

typedef struct quantising {
    hp_job *j;
    hp_graph *graph; /* the int8 program's */
    hp_clip_options clip;
    hp_factors factors;
    int64_t steps;
} quantising;

static hp_status find_observer(const char *name, hp_clip_options *clip, hp_error *err) {
    for (int i = 0; hp_observer_names[i]; i++)
        if (strcmp(hp_observer_names[i], name) == 0) {
            clip->kind = i;
            return HP_OK;
        }
    return hp_fail(err, HP_EUSAGE, "--observer %.40s: minmax, percentile, entropy or mse", name);
}

static hp_status open_observer(quantising *q, hp_error *err) {
    const hp_job *j = q->j;
    hp_plan other = j->plan;
    if (!j->plan.graph->deployed || j->plan.strategy.prec != HP_PREC_FP32)
        return hp_fail(err, HP_EPLAN, "calibration runs in fp32: hplan simulate --mode infer --prec fp32");
    q->clip.percentile = j->options->quantise.percentile;
    HP_TRY(find_observer(j->options->quantise.observer, &q->clip, err));
    other.strategy.prec = HP_PREC_INT8;
    other.float_layers = j->options->quantise.float_layers;
    const int64_t all = hp_loader_steps(j->train.loader),
                  wanted = (j->options->quantise.images + j->plan.batch - 1) / j->plan.batch;
    q->steps = wanted < all ? wanted : all;
    return hp_plan_graph(j->memory, &other, &q->graph, err);
}

/* The box of the image it loads; NULL: none (where the loss is, only labels are loaded). */
static const hp_box *loaded_box(const hp_role *role, int32_t task) {
    const hp_task *t = &role->task[task];
    const int32_t buffer = t->op == HP_TASK_LOAD ? role->operand[t->operand] : -1;
    return buffer < 0 ? NULL : &role->buffer[buffer].box;
}

/* Cuts `own`, a part of the image, where a part that `role` loads begins. */
static void end_before(const hp_role *role, hp_box *own) {
    for (int t = 0; t < role->n_task; t++) {
        const hp_box *other = loaded_box(role, t);
        for (int a = HP_AXIS_N; other && a <= HP_AXIS_W; a++)
            if (other->lo[a] > own->lo[a] && other->lo[a] < own->hi[a]) own->hi[a] = other->lo[a];
    }
}

/* Tiles of the image overlap by their halos: a pixel is counted in the last tile that contains it. */
hp_status hp_job_observe(void *job, int32_t task, hp_error *err) {
    const hp_job *j = job;
    const hp_box *part = loaded_box(j->train.role, task);
    hp_box own;
    (void)err;
    if (!j->deployed.observer) return HP_OK;
    if (part) own = *part;
    for (int i = 0; part && i < j->plan.program->n_role; i++) end_before(&j->plan.program->role[i], &own);
    hp_observe_task(j->deployed.observer, j->train.role, task, j->device.arena, part ? &own : NULL);
    return HP_OK;
}

/* One pass over the images. */
static hp_status run_pass(quantising *q, hp_error *err) {
    q->j->steps = q->steps;
    HP_TRY(hp_job_train(q->j, err));
    return hp_observer_next(q->j->deployed.observer, q->j->comm, err);
}

static hp_status new_observer(quantising *q, hp_error *err) {
    hp_observer_free(q->j->deployed.observer);
    q->j->deployed.observer = NULL;
    return hp_observer_new(q->j->plan.graph, q->graph, &q->j->deployed.observer, err);
}

/* The ranges observed determine which channels are scaled; calibration then restarts with the rescaled
 * weights. */
static hp_status equalise_channels(quantising *q, hp_error *err) {
    HP_TRY(new_observer(q, err));
    HP_TRY(run_pass(q, err));
    HP_TRY(hp_equalise(q->j->memory, q->j->deployed.constants, hp_observer_most(q->j->deployed.observer),
                       &q->factors, err));
    return hp_job_pass_reopen(q->j, &q->j->train, err);
}

static hp_status run_passes(quantising *q, hp_error *err) {
    if (q->j->options->quantise.equalise) HP_TRY(equalise_channels(q, err));
    HP_TRY(new_observer(q, err));
    HP_TRY(run_pass(q, err));
    const bool counts = q->clip.kind != HP_OBSERVE_MINMAX || q->j->options->quantise.correct;
    return counts ? run_pass(q, err) : HP_OK;
}

static hp_status write_file(quantising *q, hp_error *err) {
    const hp_job *j = q->j;
    hp_quantised_info info = {.net = j->plan.net,
                              .observer = j->options->quantise.observer,
                              .images = q->steps * j->plan.batch,
                              .float_layers =
                                  j->options->quantise.float_layers ? j->options->quantise.float_layers : ""};
    hp_constants *c = NULL;
    HP_TRY(hp_quantised_source(j->memory, j->options->init, j->plan.seed, &info.source, err));
    HP_TRY(hp_job_constants_of(q->j, q->graph, &c, err));
    if (q->factors.n_layer) hp_factors_apply(&q->factors, j->plan.graph, c);
    hp_observer_quantise(j->deployed.observer, &q->clip, c);
    hp_status s = j->options->quantise.correct ? hp_observer_correct(j->deployed.observer, c, err) : HP_OK;
    info.n_mean = j->plan.graph->image_c <= (int32_t)(sizeof info.mean / sizeof *info.mean)
                      ? j->plan.graph->image_c
                      : 1;
    for (int i = 0; i < info.n_mean; i++) {
        info.mean[i] = j->options->data.pixels.mean[i];
        info.std[i] = j->options->data.pixels.std[i];
    }
    if (s == HP_OK && j->comm->rank == 0) s = hp_quantised_write(j->options->quantise.file, c, &info, err);
    hp_constants_close(c);
    return s;
}

hp_status hp_job_quantise(hp_job *j, hp_error *err) {
    quantising q = {.j = j};
    HP_TRY(hp_job_agree(j, open_observer(&q, err), err));
    hp_status s = run_passes(&q, err);
    if (s == HP_OK) s = hp_job_agree(j, write_file(&q, err), err);
    hp_observer_free(j->deployed.observer);
    j->deployed.observer = NULL;
    return s;
}
