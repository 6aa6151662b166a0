/* run_checkpoint.c - what a job saves beside its memory, and what it takes up again. */
#include "exec/run/job.h"

#include "exec/interp/exec_interp.h"
#include "base/st_write.h"
#include "base/version.h"
#include "networks/graph/optimizer.h"

#include <string.h>

/* --- what this run is --- */

/* Identifies the layout of the state: runs with the same text have it in the same places. */
static const char *layout_of(const hp_job *j) {
    char strategy[HP_STRATEGY_TEXT];
    return hp_arena_printf(j->memory, "%s on %s by hplan %s", hp_strategy_text(&j->plan.strategy, strategy),
                           j->plan.device->name, hp_version());
}

/* Only rank 0 compares it. */
static hp_status hash_data(hp_job *j, const char **hash, hp_error *err) {
    uint64_t h = 0;
    if (j->comm->rank == 0 && j->train.data) HP_TRY(hp_dataset_fingerprint(j->train.data, &h, err));
    *hash = hp_arena_printf(j->memory, "%016llx", (unsigned long long)h);
    return HP_OK;
}

static hp_manifest describe(const hp_job *j, const char *data_hash) {
    char strategy[HP_STRATEGY_TEXT];
    const hp_plan *plan = &j->plan;
    const hp_exec_options *o = j->options;
    const hp_rates *r = &j->rates;
    char schedule[HP_LR_TEXT];
    return (hp_manifest){
        .net = plan->net,
        .model = plan->model ? hp_arena_strdup(j->memory, hp_hash_bytes(plan->model, strlen(plan->model)).hex)
                             : "",
        .image_h = plan->image_h,
        .image_w = plan->image_w,
        .classes = plan->classes,
        .batch = plan->batch,
        .seed = hp_arena_printf(j->memory, "%llu", (unsigned long long)plan->seed),
        .dtype = hp_st_infos[plan->program->dtype == HP_F64 ? HP_ST_F64 : HP_ST_F32].name,
        .data_hash = data_hash,
        .samples = j->train.data ? hp_dataset_count(j->train.data) : 0,
        .shuffle = o->data.shuffle,
        .optimizer = hp_optimizer_of(plan->graph)->name,
        .lr = r->schedule.lr,
        .lr_schedule = hp_arena_strdup(j->memory, hp_lr_text(&r->schedule, j->steps, schedule)),
        .momentum = r->momentum,
        .beta1 = r->beta1,
        .beta2 = r->beta2,
        .adam_eps = r->eps,
        .weight_decay = r->weight_decay,
        .clip_norm = r->clip_norm,
        .dropout = o->dropout,
        .data = o->data.name,
        .layout = layout_of(j),
        .strategy = hp_arena_strdup(j->memory, hp_strategy_text(&plan->strategy, strategy)),
        .ranks = j->comm->size,
        .local = plan->program->local};
}

/* --- opening --- */

static hp_status check_plan(const hp_job *j, hp_error *err) {
    if (j->plan.program->mode == HP_MODE_TRAIN && j->train.loader) return HP_OK;
    return hp_fail(err, HP_EPLAN,
                   "--checkpoint is for training, this plan trains nothing: hplan simulate --mode train");
}

static void take_up(hp_job *j, const hp_manifest *m) {
    j->begin = (hp_job_begin){.step = m->step, .updates = m->updates};
    j->scores.loss = m->loss;
    j->scores.loss_scale = (hp_loss_scale){
        .value = m->loss_scale, .good = (int32_t)m->loss_scale_good, .skipped = m->loss_scale_skipped};
}

static hp_status check_steps(const hp_job *j, hp_error *err) {
    if (j->begin.step <= j->steps) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "the checkpoint is of step %lld, --steps or --epochs ask for %lld in all",
                   (long long)j->begin.step, (long long)j->steps);
}

hp_status hp_job_checkpoint_open(hp_job *j, hp_error *err) {
    const hp_exec_options *o = j->options;
    const char *data_hash = "";
    if (!o->checkpoint.dir) return HP_OK;
    HP_TRY(hp_job_agree(j, check_plan(j, err), err));
    HP_TRY(hp_job_agree(j, hash_data(j, &data_hash, err), err));
    const hp_checkpoint_config config = {.dir = o->checkpoint.dir,
                                         .resume = o->checkpoint.resume,
                                         .every_steps = o->checkpoint.every_steps,
                                         .every_s = o->checkpoint.every_s,
                                         .keep = o->checkpoint.keep,
                                         .comm = j->comm,
                                         .memory = &j->device.memory,
                                         .arena = j->device.arena,
                                         .program = j->plan.program,
                                         .graph = j->plan.graph,
                                         .role = j->role,
                                         .replica = j->replica,
                                         .run = describe(j, data_hash),
                                         .stop = j->signals.stop,
                                         .leave = j->signals.leave};
    HP_TRY(hp_checkpoint_open(&config, &j->saved.checkpoint, &j->speaker, err));
    const hp_manifest *resumed = hp_checkpoint_resumed(j->saved.checkpoint);
    if (resumed) take_up(j, resumed);
    return hp_job_agree(j, check_steps(j, err), err);
}

/* --- during the run --- */

int64_t hp_job_updates(const hp_job *j, int64_t done) {
    const hp_program *p = j->plan.program;
    if (p->mode == HP_MODE_INFER) return 0;
    return j->begin.updates + (done - j->begin.step - j->strange.restored) * hp_norm_groups(p);
}

hp_status hp_job_checkpoint_visit(hp_job *j, int64_t done, hp_error *err) {
    if (!j->saved.checkpoint) return HP_OK;
    const hp_checkpoint_now now = {.done = done,
                                   .last = done == j->steps,
                                   .asked = hp_interp_metric(j->train.interp)[HP_METRIC_ASKED],
                                   .updates = hp_job_updates(j, done),
                                   .loss = j->scores.loss,
                                   .loss_scale = j->scores.loss_scale.value,
                                   .loss_scale_good = j->scores.loss_scale.good,
                                   .loss_scale_skipped = j->scores.loss_scale.skipped};
    return hp_checkpoint_visit(j->saved.checkpoint, &now, &j->saved.leaves, err);
}
